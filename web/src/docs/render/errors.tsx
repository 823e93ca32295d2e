// A page for every error code and every close code: where a problem's type leads.
import { HTML } from "./layout";
import { highlight, renderInline } from "./markdown";
import type { ApiError, ClientCode, CloseCode, Contract } from "./contract";

/** ErrorPage tells what a code means, what to do, and which operations return it. */
export function ErrorPage({ error }: { error: ApiError }) {
  const example = {
    type: `/docs/errors/${error.code}`, title: error.title, status: error.status, detail: `${error.title}.`,
    instance: error.operations[0]?.path.replace(/\{\w+\}/g, "7") ?? "/api/v1/realtime", code: error.code,
    requestId: "6f1c1d1e-8f0e-4f5e-9d44-0d5f6f0f9d10", retryable: error.retryable,
  };
  return (
    <>
      <p class="kicker">Error · status {error.status}</p>
      <h1><code>{error.code}</code></h1>
      <p class="lead">{error.title}.</p>
      <h2 id="what-to-do">What to do</h2>
      <HTML as="p" html={renderInline(error.advice)} />
      <p>
        {error.retryable
          ? "The same request may succeed later: send it again with the same Idempotency-Key."
          : "The same request will not succeed by being sent again."}
        {error.status < 500 && " Nothing was changed."}
      </p>
      <h2 id="in-code">In code</h2>
      <Caught code={error.code} />
      <h2 id="the-body">The body</h2>
      <p><code>application/problem+json</code>; the same object is the <code>error</code> of a reply on a WebSocket.</p>
      <HTML html={highlight(JSON.stringify(example, null, 2), "json")} />
      <h2 id="operations">Operations that return it</h2>
      {error.operations.length === 0
        ? <p>No HTTP operation lists it: it comes in <a href="/docs/events">replies on a WebSocket</a>, or when no operation matches the request.</p>
        : <OperationList error={error} />}
      <p><a href="/docs/errors">All errors</a></p>
    </>
  );
}

/** ClientCodePage tells what a code means that no response has: the SDK reports it. */
export function ClientCodePage({ error }: { error: ClientCode }) {
  return (
    <>
      <p class="kicker">Error · of the SDK itself</p>
      <h1><code>{error.code}</code></h1>
      <p class="lead">{error.title}.</p>
      <h2 id="what-to-do">What to do</h2>
      <HTML as="p" html={renderInline(error.advice)} />
      <h2 id="in-code">In code</h2>
      <Caught code={error.code} />
      <p>Its <code>status</code> is 0 and <code>retryable</code> is <code>{String(error.retryable)}</code>. No response of the service has this code.</p>
      <p><a href="/docs/errors">All errors</a></p>
    </>
  );
}

function Caught({ code }: { code: string }) {
  return <HTML html={highlight(`try {\n  // a call of the SDK\n} catch (error) {\n  if (error.code === "${code}") {\n    show(error.detail);\n  }\n}`, "typescript")} />;
}

function OperationList({ error }: { error: ApiError }) {
  const list = (
    <ul class="operations">
      {error.operations.map((one) => (
        <li>
          <span class={`method ${one.method.toLowerCase()}`}>{one.method}</span>{" "}
          <a href={`/docs/http/${one.tag}#${one.id}`}>{one.summary}</a>
        </li>
      ))}
    </ul>
  );
  if (error.operations.length <= 12) return list;
  return <details><summary>{error.operations.length} operations</summary>{list}</details>;
}

/** ErrorsPage lists every code by status. */
export function ErrorsPage({ contract, intro }: { contract: Contract; intro: string }) {
  const statuses = [...new Set(contract.errors.map((one) => one.status))];
  return (
    <>
      <h1>Errors</h1>
      <HTML html={intro} />
      <p>On a WebSocket a connection may also end with a <a href="/docs/close">close code</a>.</p>
      {statuses.map((status) => (
        <section>
          <h2 id={`status-${status}`}>{status}</h2>
          <ul class="codes">
            {contract.errors.filter((one) => one.status === status).map((one) => (
              <li>
                <a href={`/docs/errors/${one.code}`}><code>{one.code}</code></a> {one.title}
                {one.retryable && <span class="badge">retryable</span>}
              </li>
            ))}
          </ul>
        </section>
      ))}
      <section>
        <h2 id="status-0">Of the SDK itself</h2>
        <p>A <code>ParlorError</code> may also have one of these, with status 0:</p>
        <ul class="codes">
          {contract.clientCodes.map((one) => (
            <li>
              <a href={`/docs/errors/${one.code}`}><code>{one.code}</code></a> {one.title}
              {one.retryable && <span class="badge">retryable</span>}
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

export function ClosePage({ close }: { close: CloseCode }) {
  return (
    <>
      <p class="kicker">Close code of a WebSocket</p>
      <h1>{close.code} · {close.title}</h1>
      <p class="lead">{close.meaning}</p>
      <h2 id="what-to-do">What to do</h2>
      <p>{close.advice}</p>
      <p>
        {close.reconnect
          ? <>The SDK reconnects by itself, with the same <code>room</code> objects.</>
          : <>The SDK does not reconnect: its state becomes <code>closed</code>, and <code>error</code> says why.</>}
      </p>
      <h2 id="in-code">In code</h2>
      <HTML html={highlight(`socket.addEventListener("close", (event) => {\n  if (event.code === ${close.code}) ${close.reconnect ? "reconnect();" : "showWhy(event.reason); // do not reconnect"}\n});`, "typescript")} />
      <p><a href="/docs/close">All close codes</a></p>
    </>
  );
}

export function ClosesPage({ contract }: { contract: Contract }) {
  return (
    <>
      <h1>Close codes</h1>
      <p class="lead">Why a WebSocket was closed. Treat a code that is not listed like 1012: reconnect and resume.</p>
      <h2 class="visually-hidden">All codes</h2>
      <ul class="codes">
        {contract.closeCodes.map((one) => (
          <li>
            <a href={`/docs/close/${one.code}`}><code>{one.code}</code></a> {one.title}
            {!one.reconnect && <span class="badge">do not reconnect</span>}
          </li>
        ))}
      </ul>
    </>
  );
}
