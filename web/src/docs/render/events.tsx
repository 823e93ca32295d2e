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

/** Example shows the first example of a message, folded where it is long. */
function Example({ message }: { message: Message }) {
  if (message.examples.length === 0) return null;
  const text = formatJSON(message.examples[0]);
  const block = <HTML html={highlight(text, "json")} />;
  if (text.split("\n").length <= 16) return block;
  return <details><summary>Example<span class="visually-hidden"> of {message.name}</span></summary>{block}</details>;
}

/** ChannelEntry has the requests of a channel; prefix tells those that another channel has too apart. */
function ChannelEntry({ channel, prefix = "" }: { channel: Channel; prefix?: string }) {
  return (
    <>
      {channel.requests.map((request) => (
        <section class="entry">
          <h3 id={prefix + request.message.name}><code>{request.message.type}</code></h3>
          <p>{request.summary}.</p>
          {request.description && <HTML html={renderText(request.description)} />}
          <Data message={request.message} />
          <Example message={request.message} />
          <p>Replies:</p>
          <ul class="replies">
            {request.replies.map((reply) => (
              <li>
                <HTML as="span" html={renderInline(reply.summary)} />
                {reply.name === "refused" ? <>: a <a href="/docs/errors">problem</a> as <code>error</code></> : <Example message={reply} />}
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

function EventEntries({ events }: { events: Message[] }) {
  return (
    <>
      {events.map((message) => (
        <section class="entry">
          <h3 id={message.name}><code>{message.type}</code></h3>
          <p><HTML as="span" html={renderInline(message.summary)} />.</p>
          <Data message={message} />
          <Example message={message} />
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
  const server = channels.find((one) => one.name === "server")!;
  const webhook = channels.find((one) => one.name === "webhook")!;
  const serverEvents = server.events.filter((one) => !realtime.events.some((shown) => shown.name === one.name));
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
      <EventEntries events={realtime.events} />
      <h2 id="server">A game's server on <code>{server.address}</code></h2>
      <HTML html={renderText(server.description)} />
      <ChannelEntry channel={server} prefix="server-" />
      <h2 id="server-events">Events to a game's server</h2>
      <p>The events of a room to which it subscribed are those above.</p>
      <EventEntries events={serverEvents} />
      <h2 id="webhooks">Webhooks</h2>
      <HTML html={renderText(webhook.description)} />
      <EventEntries events={webhook.events} />
      <h2 id="saves">Requests on <code>{saves.address}</code> and <code>{load.address}</code></h2>
      <p>Both understand all of these messages.</p>
      <ChannelEntry channel={{ ...saves, requests: [...saves.requests, ...load.requests] }} />
      <h2 id="shapes">Shapes</h2>
      {Object.entries(schemas).map(([name, schema]) => <SchemaEntry name={name} schema={schema} />)}
    </>
  );
}
