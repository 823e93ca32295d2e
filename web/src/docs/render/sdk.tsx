// The reference of the SDK: a page for each area, from its types and from content/sdk/<area>.md.
import type { Contract } from "./contract";
import { HTML } from "./layout";
import { escapeHTML, renderInline, renderMarkdown, type Heading } from "./markdown";
import { Members } from "./schema";
import type { Area, Declaration, Member } from "./sdk_types";

/** What the text of an area has beside the types: an introduction, and examples of members by name. */
export interface AreaText {
  html: string;
  headings: Heading[];
  examples: Map<string, string>; // HTML by the name of a member
}

/** Reads content/sdk/<area>.md: a section whose heading is only code belongs to the member of that name. */
export function readAreaText(area: Area, text: string): AreaText {
  if (!/```(typescript|tsx|xml)\n/.test(text)) throw new Error(`content/sdk/${area.name}.md has no example`);
  const [intro, ...sections] = text.split(/^(?=## )/m);
  const examples = new Map<string, string>();
  const prose = [intro!];
  for (const section of sections) {
    const member = section.match(/^## `([\w.-]+)`\n/)?.[1];
    if (!member) prose.push(section);
    else {
      if (!area.subjects.some((one) => one.members.some((each) => idOf(one, each, area) === member))) {
        throw new Error(`content/sdk/${area.name}.md: there is no member ${member}`);
      }
      examples.set(member, renderMarkdown(section.slice(section.indexOf("\n"))).html);
    }
  }
  const { html, headings } = renderMarkdown(prose.join(""));
  return { html, headings, examples };
}

/** Returns the id of a member on the page of its area. Of two with one name the second has a longer one. */
export function idOf(subject: Declaration, member: Member, area: Area): string {
  const first = area.subjects.find((one) => one.members.some(({ name }) => name === member.name))!;
  return first === subject ? member.name : `${(subject.subject || subject.name).split(".").at(-1)}-${member.name}`;
}

/** Returns how a program writes a member. */
export function titleOf(subject: Declaration, member: Member): string {
  const arguments_ = member.kind === "method" ? `(${member.parameters.filter((one) => !one.optional).map(({ name }) => name).join(", ")})` : "";
  if (!subject.subject) return member.name + arguments_;
  return `${subject.subject}.${member.name}${arguments_}`;
}

type Links = Map<string, string>; // the address of each type

/** Returns where every type of the SDK is described. */
export function linksOf(areas: Area[]): Links {
  return new Map(areas.flatMap((area) => [...area.subjects, ...area.types].map((one) =>
    [one.name, `/docs/sdk/${area.name}#${one.name}`] as [string, string])));
}

/** Returns code in which the names of types lead to where they are described. */
function linkTypes(code: string, links: Links): string {
  return escapeHTML(code)
    .replace(/(?:Schemas|components\["schemas"\]|components\[&quot;schemas&quot;\])\[&quot;(\w+)&quot;\]/g, (_, name) =>
      `<a href="${schemaAddress(name)}">${name}</a>`)
    .replace(/(<a .*?<\/a>)|\b([A-Z]\w+)\b/g, (whole, link, name) =>
      !link && links.has(name) ? `<a href="${links.get(name)}">${name}</a>` : whole);
}

/** The addresses of named schemas. Other names are the data of an event, such as RoomJoinedData. */
let schemaAddresses = new Map<string, string>();

/** Returns where a schema is described. */
function schemaAddress(name: string): string {
  const address = schemaAddresses.get(name);
  if (address) return address;
  const [subject, ...rest] = name.replace(/Data$/, "").split(/(?=[A-Z])/).map((word) => word.toLowerCase());
  return `/docs/events#${[subject, rest.join("_")].filter(Boolean).join(".")}`;
}

/** Renders a sentence; each code of an error in it leads to its page. */
function Sentence({ text, codes }: { text: string; codes: Set<string> }) {
  const linked = renderInline(text).replace(/<code>(\w+)<\/code>|\b([a-z]+(?:_[a-z]+)+|forbidden|banned|offline|timeout|aborted|closed)\b/g,
    (whole, inCode, bare) => {
      const code = inCode ?? bare;
      const isCode = codes.has(code) && (inCode || /_/.test(code) || new RegExp(`(with|,|or) ${code}\\b`).test(text));
      return isCode ? `<a href="/docs/errors/${code}"><code>${code}</code></a>` : whole;
    });
  return <HTML as="p" html={linked} />;
}

interface Shown { area: Area; text: AreaText; links: Links; docs: Map<string, string>; codes: Set<string>; contract: Contract }

const Signature = ({ code, links }: { code: string; links: Links }) => (
  <pre tabIndex={0} class="signature"><code dangerouslySetInnerHTML={{ __html: linkTypes(code, links) }} /></pre>
);

/** Returns the first sentence on a type that is known, for a parameter or a result of it. */
function noteOn(type: string, docs: Map<string, string>): string {
  const names = [...type.matchAll(/\b[A-Z]\w+\b/g)].map(([name]) => name).filter((name) => docs.has(name));
  const [name] = names.filter((one) => one !== "Page");
  return name ? docs.get(name)!.split(/(?<=\.) /)[0]! : "";
}

function MemberEntry({ subject, member, shown }: { subject: Declaration; member: Member; shown: Shown }) {
  const { area, text, links, docs, codes } = shown;
  const id = idOf(subject, member, area);
  return (
    <section class="entry">
      <h3 id={id}><code>{titleOf(subject, member)}</code></h3>
      <Signature code={member.signatures.join("\n")} links={links} />
      <Sentence text={member.doc} codes={codes} />
      {member.kind === "method" && member.parameters.length > 0 && (
        <ul class="members">
          {member.parameters.map((one) => (
            <li>
              <code class="name">{one.name}</code>{" "}
              <code class="type" dangerouslySetInnerHTML={{ __html: linkTypes(one.type, links) }} />
              {one.optional && <span class="note"> optional</span>}
              {noteOn(one.type, docs) && <Sentence text={noteOn(one.type, docs)} codes={codes} />}
            </li>
          ))}
        </ul>
      )}
      {member.kind === "method" && member.returns && (
        <p class="limits">
          Returns <code dangerouslySetInnerHTML={{ __html: linkTypes(member.returns, links) }} />
          {noteOn(member.returns, docs) && <>: <span dangerouslySetInnerHTML={{ __html: renderInline(noteOn(member.returns, docs)) }} /></>}
        </p>
      )}
      {text.examples.has(id) && <HTML html={text.examples.get(id)!} />}
    </section>
  );
}

function TypeEntry({ type, shown }: { type: Declaration; shown: Shown }) {
  const { links, codes, contract } = shown;
  const schema = type.schema ? contract.schemas[type.schema] : undefined;
  return (
    <section class="entry">
      <h3 id={type.name}><code>{type.name}</code></h3>
      {type.doc && <Sentence text={type.doc} codes={codes} />}
      {type.signature && !schema && <Signature code={type.signature} links={links} />}
      {schema && <p>The schema <a href={schemaAddress(type.schema!)}>{type.schema}</a>:</p>}
      {schema && <Members schema={schema} />}
      {type.members.length > 0 && (!type.signature || type.signature.length > 400) && (
        <ul class="members">
          {type.members.map((one) => (
            <li>
              <code class="type" dangerouslySetInnerHTML={{ __html: linkTypes(one.signatures.join("\n"), links) }} />
              {one.doc && <Sentence text={one.doc} codes={codes} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Returns the headings of a page of the reference. */
export const headingsOf = (area: Area, text: AreaText): Heading[] => [
  ...text.headings,
  ...area.subjects.flatMap((one) => one.members.map((member) => ({ id: idOf(one, member, area), text: titleOf(one, member) }))),
];

/** AreaPage is the reference of an area. */
export function AreaPage({ area, text, areas, contract }: { area: Area; text: AreaText; areas: Area[]; contract: Contract }) {
  const place = (page: string) => (name: string) => [name, `${page}#${name}`] as const;
  schemaAddresses = new Map([
    ...Object.keys(contract.events.schemas).map(place("/docs/events")),
    ...Object.keys(contract.schemas).map(place("/docs/http/schemas")),
  ]);
  const docs = new Map(areas.flatMap((one) => [...one.subjects, ...one.types].map(({ name, doc }) => [name, doc] as [string, string])));
  const codes = new Set([...contract.errors, ...contract.clientCodes].map(({ code }) => code));
  const shown = { area, text, links: linksOf(areas), docs, codes, contract };
  return (
    <>
      <HTML class="prose" html={text.html} />
      {area.subjects.map((subject) => {
        const isFunction = subject.members[0]?.name === subject.name;
        return (
          <>
            <h2 id={isFunction ? undefined : subject.name}><code>{isFunction ? `${subject.name}()` : subject.name}</code></h2>
            {!isFunction && <Sentence text={subject.doc} codes={codes} />}
            {subject.members.map((member) => <MemberEntry subject={subject} member={member} shown={shown} />)}
          </>
        );
      })}
      {area.types.length > 0 && <h2 id="types">Types</h2>}
      {area.types.map((type) => <TypeEntry type={type} shown={shown} />)}
    </>
  );
}
