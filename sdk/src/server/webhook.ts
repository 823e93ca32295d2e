import { createHmac, timingSafeEqual } from "node:crypto";
import { ParlorError } from "../errors.js";

const toleranceSeconds = 300;

const decode = (base64: string) => new Uint8Array(Buffer.from(base64, "base64"));

/** A webhook whose signature is right. */
export interface Webhook {
  /** Of the event, the same in every attempt: an id that was handled before needs no more work. */
  id: string;
  /** Such as `room.started`. */
  type: string;
  /** When it happened, ISO 8601. */
  timestamp: string;
  data: any;
}

/** The headers of a request: of Node, of fetch, or any object with lower-case names. */
export type WebhookHeaders = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

/**
 * Checks a webhook by the Standard Webhooks form, and returns what it says. `body` is the body as it came,
 * before any parser. `secret` is `whsec_…`, or a list of such, one of which has to fit. Throws a ParlorError
 * `unauthenticated` with the status 401 when no signature fits, or it is older or newer than 5 minutes.
 */
export function verifyWebhook(headers: WebhookHeaders, body: string | Uint8Array, secret: string | string[]): Webhook {
  const header = (name: string) =>
    String((typeof headers.get === "function" ? headers.get(name) : (headers as any)[name]) ?? "");
  const refuse = (detail: string) => new ParlorError("unauthenticated", detail, { status: 401 });
  const [id, sentAt] = [header("webhook-id"), header("webhook-timestamp")];
  const age = Math.abs(Date.now() / 1000 - (/^\d+$/.test(sentAt) ? +sentAt : NaN));
  if (!id || !(age <= toleranceSeconds)) throw refuse("the headers are missing, or too old or too new");
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signatures = header("webhook-signature").split(" ").filter((one) => one.startsWith("v1,"))
    .map((one) => decode(one.slice(3)));
  const isRight = [secret].flat().some((one) => {
    const key = decode(one.replace(/^whsec_/, ""));
    if (!key.length) throw new TypeError("needs a secret like whsec_…");
    const expected = new Uint8Array(createHmac("sha256", key).update(`${id}.${sentAt}.`).update(body).digest());
    return signatures.some((given) => given.length === expected.length && timingSafeEqual(given, expected));
  });
  if (!isRight) throw refuse("no signature fits");
  return { id, ...JSON.parse(text) };
}
