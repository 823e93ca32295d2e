// The reference of the sockets: requests, replies and events.
import { HTML } from "./layout";
import { highlight, renderInline, renderText } from "./markdown";
import { Members, SchemaEntry, TypeName } from "./schema";
import type { Channel, Contract, Message } from "./contract";

/** Returns an example as JSON, on one line where it is short. */
function formatJSON(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length <= 90 ? line : JSON.stringify(value, null, 2);
}

function Data({ message }: { message: Message }) {
  if (!message.data) return null;
  return (
    <>
      <p class="limits">The member <code>data</code>: <span class="type"><TypeName schema={message.data} /></span></p>
      <Members schema={message.data} />
    </>
  );
}

const Examples = ({ message }: { message: Message }) => (
  <>{message.examples.slice(0, 1).map((one) => <HTML html={highlight(formatJSON(one), "json")} />)}</>
);

function ChannelEntry({ channel }: { channel: Channel }) {
  return (
    <>
      {channel.requests.map((request) => (
        <section class="entry">
          <h3 id={request.message.name}><code>{request.message.name}</code></h3>
          <p>{request.summary}.</p>
          {request.description && <HTML html={renderText(request.description)} />}
          <Data message={request.message} />
          <Examples message={request.message} />
          <p>Replies:</p>
          <ul class="replies">
            {request.replies.map((reply) => (
              <li>
                <HTML as="span" html={renderInline(reply.summary)} />
                {reply.name === "refused" ? <>: a <a href="/docs/errors">problem</a> as <code>error</code></> : <Examples message={reply} />}
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

/** EventsPage has all channels: the requests by channel, then every event. */
export function EventsPage({ contract }: { contract: Contract }) {
  const { channels, description, schemas } = contract.events;
  const saves = channels.find((one) => one.name === "save")!;
  const load = channels.find((one) => one.name === "load")!;
  const realtime = channels.find((one) => one.name === "realtime")!;
  return (
    <>
      <h1>Events and sockets</h1>
      <p class="lead">
        Built from <a href="/asyncapi.yaml">asyncapi.yaml</a>. The table of all events with the reasons behind them is
        {" "}<a href="/docs/guide/events">Events in short</a>.
      </p>
      <HTML html={renderText(description)} />
      <p>See <a href="/docs/close">all close codes</a> and <a href="/docs/errors">all errors</a>.</p>
      <h2 id="realtime">Requests on <code>{realtime.address}</code></h2>
      <p>{realtime.description}.</p>
      <ChannelEntry channel={realtime} />
      <h2 id="events">Events</h2>
      {realtime.events.map((message) => (
        <section class="entry">
          <h3 id={message.name}><code>{message.name}</code></h3>
          <p><HTML as="span" html={renderInline(message.summary)} />.</p>
          <Data message={message} />
          <Examples message={message} />
        </section>
      ))}
      <h2 id="saves">Requests on <code>{saves.address}</code> and <code>{load.address}</code></h2>
      <p>Both understand all of these messages.</p>
      <ChannelEntry channel={{ ...saves, requests: [...saves.requests, ...load.requests] }} />
      <h2 id="shapes">Shapes</h2>
      {Object.entries(schemas).map(([name, schema]) => <SchemaEntry name={name} schema={schema} />)}
    </>
  );
}
