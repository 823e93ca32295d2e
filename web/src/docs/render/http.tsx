// The HTTP reference.
import { HTML } from "./layout";
import { highlight, renderInline, renderText } from "./markdown";
import { Member, Members, SchemaEntry, TypeName } from "./schema";
import { codesOf, type Contract, type Media, type Operation, type Response, type Schema } from "./contract";

export const tagTitles: Record<string, string> = {
  auth: "Signing in", me: "Profile and friends", rooms: "Rooms", leaderboards: "Leaderboards", tournaments: "Tournaments", wallet: "Wallet", assets: "Assets and purchases",
  admin: "Operators and game servers", sockets: "WebSockets", node: "The node",
};

const tokens: [caller: string, variable: string][] = [
  ["players", "TOKEN"], ["game servers", "SERVER_KEY"], ["operators", "ADMIN_KEY"],
];

export function exampleOf(media: Media | undefined): unknown {
  return media?.example ?? Object.values(media?.examples ?? {})[0]?.value;
}

const jsonBody = (operation: Operation) => operation.body?.content["application/json"];

/** Returns a body to start from: the example, or the required members with values of their types. */
export function sampleBody(operation: Operation, schemas: Record<string, Schema>): unknown {
  const media = jsonBody(operation);
  return exampleOf(media) ?? (media?.schema ? sample(media.schema, schemas) : undefined);
}

function sample(schema: Schema, schemas: Record<string, Schema>): unknown {
  if (schema.$ref) return sample(schemas[schema.$ref.split("/").at(-1)!]!, schemas);
  if (schema.example !== undefined) return schema.example;
  if (schema.enum) return schema.enum[0];
  if (schema.allOf?.length) return sample(schema.allOf[0]!, schemas);
  if (schema.oneOf?.length) return sample(schema.oneOf[0]!, schemas);
  switch (schema.type) {
    case "object":
      return Object.fromEntries((schema.required ?? []).map((name) => [name, sample(schema.properties![name]!, schemas)]));
    case "array": return schema.items ? [sample(schema.items, schemas)] : [];
    case "integer": case "number": return schema.minimum ?? 1;
    case "boolean": return true;
    default: return schema.format === "uuid" ? "0190a1b2-c3d4-8000-8000-000000000001" : "text";
  }
}

/** Returns the command that sends an operation. */
function curlOf(operation: Operation, schemas: Record<string, Schema>): string {
  const query = operation.parameters.filter((one) => one.in === "query" && one.required).map((one) => `${one.name}=…`);
  const address = `"$URL${operation.path.replace(/\{(\w+)\}/g, "$$$1")}${query.length ? `?${query.join("&")}` : ""}"`;
  const parts = [`curl ${operation.method === "GET" ? "" : `-X ${operation.method} `}${address}`];
  const token = tokens.find(([caller]) => operation.callers.includes(caller));
  if (token) parts.push(`-H "Authorization: Bearer $${token[1]}"`);
  if (operation.parameters.some((one) => one.name === "Idempotency-Key" && one.required)) {
    parts.push(`-H "Idempotency-Key: $(uuidgen)"`);
  }
  const body = sampleBody(operation, schemas);
  if (body !== undefined) {
    const line = JSON.stringify(body);
    parts.push(`-H 'Content-Type: application/json'`, `-d '${line.length <= 80 ? line : JSON.stringify(body, null, 2)}'`);
  }
  return parts.join(" \\\n  ");
}

/** Path shows a path that may break at its slashes. */
const Path = ({ path }: { path: string }) => (
  <code class="path">{path.split("/").map((part, i) => <>{i > 0 && <>/<wbr /></>}{part}</>)}</code>
);

function Responses({ responses }: { responses: [string, Response][] }) {
  const good = responses.filter(([status]) => Number(status) < 400);
  const bad = responses.filter(([status]) => Number(status) >= 400);
  return (
    <>
      <h3>Responses</h3>
      <ul class="responses">
        {good.map(([status, response]) => {
          const media = Object.entries(response.content ?? {})[0];
          return (
            <li>
              <span class="status good">{status}</span> <HTML as="span" html={renderInline(response.description)} />
              {media?.[1].schema && <>: <span class="type"><TypeName schema={media[1].schema} /></span></>}
              {media?.[1].schema?.properties && <Members schema={media[1].schema} />}
            </li>
          );
        })}
        {bad.map(([status, response]) => (
          <li>
            <span class="status">{status}</span>{" "}
            {codesOf(response).length === 0
              ? <HTML as="span" html={renderInline(response.description)} />
              : codesOf(response).map((code, i) => <>{i > 0 && " · "}<a href={`/docs/errors/${code}`}><code>{code}</code></a></>)}
          </li>
        ))}
      </ul>
    </>
  );
}

function OperationEntry({ operation, schemas }: { operation: Operation; schemas: Record<string, Schema> }) {
  const body = jsonBody(operation);
  const parameters = operation.parameters;
  return (
    <section class="entry operation">
      <h2 id={operation.id}>{operation.summary}</h2>
      <p class="address">
        <span class={`method ${operation.method.toLowerCase()}`}>{operation.method}</span> <Path path={operation.path} />
      </p>
      <p class="callers">
        {operation.callers.length > 0 ? `For ${operation.callers.join(" and ")}.` : "For anyone, without a token."}
        {operation.tag !== "sockets" && (
          <> <a href={`/docs/try?operation=${operation.id}`}>Try it<span class="visually-hidden">: {operation.summary}</span></a></>
        )}
      </p>
      {operation.description && <HTML html={renderText(operation.description)} />}
      {parameters.length > 0 && (
        <>
          <h3>Parameters</h3>
          <ul class="members">
            {parameters.map((one) => (
              <Member
                name={one.name} required={one.required} note={`in the ${one.in}`}
                schema={one.description ? { ...one.schema, description: one.description } : one.schema}
              />
            ))}
          </ul>
        </>
      )}
      {body?.schema && (
        <>
          <h3>Body{operation.body?.required ? "" : ", optional"}</h3>
          {body.schema.$ref ? <p>A <TypeName schema={body.schema} />.</p> : <Members schema={body.schema} />}
        </>
      )}
      {operation.tag !== "sockets" && <HTML html={highlight(curlOf(operation, schemas), "bash")} />}
      <Responses responses={operation.responses} />
    </section>
  );
}

/** Overview is the first page of the reference. */
export function Overview({ contract }: { contract: Contract }) {
  return (
    <>
      <h1>HTTP reference</h1>
      <p class="lead">
        Built from <a href="/openapi.yaml">openapi.yaml</a>, the contract that every request of the tests is checked
        against. Point a generator of clients at it.
      </p>
      <HTML html={renderText(contract.description)} />
      {contract.tags.map((tag) => (
        <section>
          <h2 id={tag.name}><a href={`/docs/http/${tag.name}`}>{tagTitles[tag.name] ?? tag.name}</a></h2>
          <p>{tag.description}.</p>
          <ul class="operations">
            {contract.operations.filter((one) => one.tag === tag.name).map((one) => (
              <li>
                <span class={`method ${one.method.toLowerCase()}`}>{one.method}</span>{" "}
                <a href={`/docs/http/${tag.name}#${one.id}`}>{one.summary}</a> <Path path={one.path} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

/** TagPage has the operations of one tag. */
export function TagPage({ contract, tag }: { contract: Contract; tag: string }) {
  const operations = contract.operations.filter((one) => one.tag === tag);
  return (
    <>
      <h1>{tagTitles[tag] ?? tag}</h1>
      <p class="lead">{contract.tags.find((one) => one.name === tag)?.description}.</p>
      {operations.map((operation) => <OperationEntry operation={operation} schemas={contract.schemas} />)}
    </>
  );
}

/** SchemasPage has every schema of openapi.yaml. */
export function SchemasPage({ contract }: { contract: Contract }) {
  return (
    <>
      <h1>Schemas</h1>
      <p class="lead">The shapes that operations and events share, by name.</p>
      <h2 class="visually-hidden">All schemas</h2>
      {Object.entries(contract.schemas).sort(([a], [b]) => a.localeCompare(b, "en"))
        .map(([name, schema]) => <SchemaEntry name={name} schema={schema} />)}
    </>
  );
}

/** TryPage sends an operation. It works in developer mode, where the policy of the page allows calls. */
export function TryPage({ contract }: { contract: Contract }) {
  const operations = contract.operations.filter((one) => one.tag !== "sockets");
  return (
    <>
      <h1>Try it</h1>
      <p class="lead">
        Sends a real request to this node. The token stays in this page and is stored nowhere. <code>parlor dev</code>{" "}
        prints tokens to paste.
      </p>
      <form id="try" class="try">
        <label for="operation">Operation</label>
        <select id="operation" name="operation">
          {contract.tags.filter((tag) => tag.name !== "sockets").map((tag) => (
            <optgroup label={tagTitles[tag.name] ?? tag.name}>
              {operations.filter((one) => one.tag === tag.name).map((one) => {
                const body = sampleBody(one, contract.schemas);
                return (
                  <option
                    value={one.id} data-method={one.method} data-path={one.path}
                    data-body={body === undefined ? undefined : JSON.stringify(body, null, 2)}
                    data-callers={one.callers.join(" and ")}
                  >{one.summary}</option>
                );
              })}
            </optgroup>
          ))}
        </select>
        <label for="path">Path</label>
        <div class="line"><output id="method" class="method" for="operation">GET</output><input id="path" name="path" spellcheck={false} /></div>
        <label for="token">Token <span id="callers" /></label>
        <input id="token" name="token" type="password" autocomplete="off" spellcheck={false} placeholder="an access token, server key or admin key" />
        <label for="body">Body</label>
        <textarea id="body" name="body" rows={8} spellcheck={false} />
        <p><button type="submit" class="primary">Send</button></p>
      </form>
      <h2>Response</h2>
      <p id="status" role="status">Nothing sent yet.</p>
      <pre id="response" role="region" tabIndex={0} aria-label="Response body"><code /></pre>
    </>
  );
}

/** TryOffPage stands at the same address where the page cannot work. */
export function TryOffPage() {
  return (
    <>
      <h1>Try it</h1>
      <p class="lead">This page sends requests on a node for development only. This node is for production.</p>
      <p>Start one on your machine, which needs nothing but the binary, and open its <code>/docs/try</code>:</p>
      <HTML html={highlight("parlor dev", "bash")} />
      <p>Every operation of the <a href="/docs/http">HTTP reference</a> has its <code>curl</code> command as well.</p>
    </>
  );
}
