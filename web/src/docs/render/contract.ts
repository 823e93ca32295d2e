// Reads the sources of the reference: both contracts and the list of error codes.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { marked, type Tokens } from "marked";
import { parse } from "yaml";
import { clientCodes } from "../../../../sdk/scripts/client_codes.mjs";

// The contracts are checked by outside validators (test/contracts.test.ts), so they are read as they
// are. Members that a page does not show are not typed.
export interface Schema {
  $ref?: string;
  type?: string;
  format?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  example?: unknown;
  nullable?: boolean;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  allOf?: Schema[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  additionalProperties?: boolean | Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
}

export interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
}

export interface Media {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

export interface Response {
  description: string;
  headers?: Record<string, { $ref?: string; description?: string }>;
  content?: Record<string, Media>;
  "x-error-codes"?: string[];
}

export interface Operation {
  id: string;
  method: string;
  path: string;
  tag: string;
  summary: string;
  description?: string;
  callers: string[];
  parameters: Parameter[];
  body?: { required?: boolean; content: Record<string, Media> };
  responses: [status: string, response: Response][];
}

export interface ApiError {
  code: string;
  status: number;
  title: string;
  retryable: boolean;
  advice: string;
  operations: Operation[];
}

/** A code that the SDK reports by itself. */
export interface ClientCode {
  code: string;
  title: string;
  retryable: boolean;
  advice: string;
}

export interface CloseCode {
  code: number;
  title: string;
  meaning: string;
  reconnect: boolean;
  advice: string;
}

export interface Message {
  name: string;
  /** The member type of the frame; the name where the frame has none, or several. */
  type: string;
  summary: string;
  data?: Schema;
  examples: unknown[];
}

export interface Channel {
  name: string;
  address: string;
  title: string;
  description: string;
  requests: { summary: string; description?: string; message: Message; replies: Message[] }[];
  events: Message[];
}

export interface Contract {
  description: string;
  tags: { name: string; description: string }[];
  operations: Operation[];
  schemas: Record<string, Schema>;
  errors: ApiError[];
  clientCodes: ClientCode[];
  events: { description: string; channels: Channel[]; schemas: Record<string, Schema> };
  closeCodes: CloseCode[];
}

type Document = any; // a parsed YAML document

/** Returns what a reference within a document points to. */
function follow<T>(document: Document, value: T & { $ref?: string }): T {
  if (!value.$ref) return value;
  const target = value.$ref.slice(2).split("/").reduce((at, part) => at?.[part.replaceAll("~1", "/")], document);
  if (!target) throw new Error(`nothing at ${value.$ref}`);
  return follow(document, target);
}

const methods = ["get", "post", "put", "patch", "delete"];
const callerNames: Record<string, string> = { player: "players", serverKey: "game servers", operator: "operators" };

function readOperations(api: Document): Operation[] {
  const list: Operation[] = [];
  for (const [path, item] of Object.entries<Document>(api.paths)) {
    for (const method of methods.filter((name) => item[name])) {
      const operation = item[method];
      list.push({
        id: operation.operationId,
        method: method.toUpperCase(),
        path,
        tag: operation.tags[0],
        summary: operation.summary,
        description: operation.description,
        callers: callersOf(operation.security ?? api.security ?? []),
        parameters: [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((one) => follow<Parameter>(api, one)),
        body: operation.requestBody && follow(api, operation.requestBody),
        responses: Object.entries<Document>(operation.responses).map(([status, one]) => [status, follow<Response>(api, one)]),
      });
    }
  }
  return list;
}

function callersOf(security: Record<string, unknown>[]): string[] {
  return security.flatMap((one) => Object.keys(one)).map((name) => callerNames[name]).filter((name) => name !== undefined);
}

/** Returns the error codes that a response may have. */
export function codesOf(response: Response): string[] {
  return response["x-error-codes"] ?? [];
}

/** Returns the rows of the first table of docs/errors.md, which is generated from the service's list. */
function readErrors(markdown: string, operations: Operation[]): ApiError[] {
  const table = marked.lexer(markdown).find((token): token is Tokens.Table => token.type === "table");
  if (!table) throw new Error("docs/errors.md has no table");
  return table.rows.map((row) => {
    const [code, status, title, retryable, advice] = row.map((cell) => cell.text);
    const name = code!.replaceAll("`", "");
    return {
      code: name, status: Number(status), title: title!, retryable: retryable === "yes", advice: advice!,
      operations: operations.filter((one) => one.responses.some(([, response]) => codesOf(response).includes(name))),
    };
  });
}

function readChannels(document: Document): Channel[] {
  const message = (reference: Document): Message => {
    const name = reference.$ref.split("/").at(-1) as string;
    const one = document.components.messages[name];
    const parts: Schema[] = [one.payload.schema, ...(one.payload.schema.allOf ?? [])];
    const data = parts.map((part) => part.properties?.data).find(Boolean);
    const types = parts.map((part) => part.properties?.type?.enum).find(Boolean);
    const type = types?.length === 1 ? String(types[0]) : name;
    return { name, type, summary: one.summary, data, examples: (one.examples ?? []).map((each: Document) => each.payload) };
  };
  return Object.entries<Document>(document.channels).map(([name, channel]) => {
    const own = Object.values<Document>(document.operations).filter((one) => one.channel.$ref === `#/channels/${name}`);
    return {
      name, address: channel.address, title: channel.title, description: channel.description,
      requests: own.filter((one) => one.action === "receive").map((one) => ({
        summary: one.summary, description: one.description, message: message(one.messages[0]),
        replies: one.reply.messages.map(message),
      })),
      events: own.filter((one) => one.action === "send").flatMap((one) => one.messages.map(message)),
    };
  });
}

/** Reads the contract of the repository at root. */
export function readContract(root: string): Contract {
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const api = parse(read("handlers/openapi.yaml"));
  const sockets = parse(read("handlers/asyncapi.yaml"));
  const operations = readOperations(api);
  return {
    description: api.info.description,
    tags: api.tags,
    operations,
    schemas: api.components.schemas,
    errors: readErrors(read("docs/errors.md"), operations),
    clientCodes,
    events: {
      description: sockets.info.description,
      channels: readChannels(sockets),
      schemas: Object.fromEntries(Object.entries<Document>(sockets.components.schemas).map(([name, one]) => [name, one.schema])),
    },
    closeCodes: sockets.info["x-close-codes"],
  };
}
