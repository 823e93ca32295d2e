// Schemas, shown as lists of members.
import { HTML } from "./layout";
import { renderInline } from "./markdown";
import type { Schema } from "./contract";

/** Returns the name of a referenced schema and the address of its description. */
function target(reference: string): { name: string; href: string } {
  const name = reference.replace(/\/schema$/, "").split("/").at(-1)!;
  const page = reference.startsWith("#") && reference.endsWith("/schema") ? "/docs/events" : "/docs/http/schemas";
  return { name, href: `${page}#${name}` };
}

/** Returns the one schema that an allOf of one part stands for, with what stands beside it. */
function flatten(schema: Schema): Schema {
  if (schema.allOf?.length === 1) {
    const { allOf, ...beside } = schema;
    return { ...allOf[0], ...beside, $ref: allOf[0]!.$ref };
  }
  return schema;
}

export function TypeName({ schema: given }: { schema: Schema }) {
  const schema = flatten(given);
  const or = schema.nullable ? " or null" : "";
  if (schema.$ref) {
    const { name, href } = target(schema.$ref);
    return <><a href={href}>{name}</a>{or}</>;
  }
  if (schema.type === "array" && schema.items) return <>list of <TypeName schema={schema.items} />{or}</>;
  const variants = schema.oneOf ?? schema.anyOf;
  if (variants) {
    return <>{variants.map((one, i) => <>{i > 0 && " or "}<TypeName schema={one} /></>)}{or}</>;
  }
  if (schema.allOf) {
    return <>{schema.allOf.map((one, i) => <>{i > 0 && " with "}<TypeName schema={one} /></>)}{or}</>;
  }
  return <>{schema.type ?? "any value"}{schema.format && !["int64", "double"].includes(schema.format) ? ` (${schema.format})` : ""}{or}</>;
}

/** Returns the limits of a value as short texts. */
function limits(schema: Schema): string[] {
  const list: string[] = [];
  const range = (least: number | undefined, most: number | undefined, unit: string) => {
    if (least !== undefined && most !== undefined) list.push(`${least} to ${most}${unit}`);
    else if (least !== undefined) list.push(`at least ${least}${unit}`);
    else if (most !== undefined) list.push(`at most ${most}${unit}`);
  };
  range(schema.minimum, schema.maximum, "");
  range(schema.minLength, schema.maxLength, " characters");
  range(schema.minItems, schema.maxItems, " items");
  if (schema.pattern) list.push(`matches ${schema.pattern}`);
  if (schema.default !== undefined) list.push(`default ${JSON.stringify(schema.default)}`);
  return list;
}

export function Member({ name, schema, required, note }: { name: string; schema: Schema; required?: boolean; note?: string }) {
  const shown = flatten(schema);
  const rules = limits(shown);
  const inner = shown.type === "array" && shown.items ? flatten(shown.items) : shown;
  return (
    <li>
      <code class="name">{name}</code> <span class="type"><TypeName schema={schema} /></span>
      {required && <span class="required"> required</span>}
      {note && <span class="note"> {note}</span>}
      {shown.description && <HTML as="p" html={renderInline(shown.description)} />}
      {shown.enum && <p class="enum">{shown.enum.map((value, i) => <>{i > 0 && " · "}<code>{String(value)}</code></>)}</p>}
      {rules.length > 0 && <p class="limits">{rules.join(", ")}</p>}
      {!inner.$ref && inner.properties && <Members schema={inner} />}
    </li>
  );
}

/** Members lists the members of an object, of all parts of an allOf. */
export function Members({ schema }: { schema: Schema }) {
  const parts = [schema, ...(schema.allOf ?? []).filter((part) => !part.$ref)];
  const required = new Set(parts.flatMap((part) => part.required ?? []));
  const members = parts.flatMap((part) => Object.entries(part.properties ?? {}));
  if (members.length === 0) return null;
  return (
    <ul class="members">
      {members.map(([name, one]) => <Member name={name} schema={one} required={required.has(name)} />)}
    </ul>
  );
}

/** SchemaEntry is a named schema with its own place on a page. */
export function SchemaEntry({ name, schema }: { name: string; schema: Schema }) {
  return (
    <section class="entry">
      <h3 id={name}><code>{name}</code> <span class="type"><TypeName schema={schema} /></span></h3>
      {schema.description && <HTML as="p" html={renderInline(schema.description)} />}
      {schema.enum && <p class="enum">{schema.enum.map((value, i) => <>{i > 0 && " · "}<code>{String(value)}</code></>)}</p>}
      {limits(schema).length > 0 && <p class="limits">{limits(schema).join(", ")}</p>}
      <Members schema={schema} />
    </section>
  );
}
