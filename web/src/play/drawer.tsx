// The drawer: the code of the last act, and everything that went over the wire.
import gameSource from "source:./game.ts";
import mainSource from "source:./main.tsx";
import plugSource from "source:./plug.ts";
import type { Page } from "./main";
import type { Traffic } from "./plug";

/** The function behind each button, and where it is. */
const functions: Record<string, [source: string, name: string]> = {
  signIn: [mainSource, "signIn"], create: [gameSource, "create"], join: [gameSource, "join"], start: [gameSource, "start"],
  move: [gameSource, "move"], cancel: [gameSource, "cancel"], bot: [mainSource, "startBot"], plug: [plugSource, "pull"],
};

/** Cuts a function with its comment out of a source. It ends where the line has its indentation again. */
function sourceOf(act: string): string {
  const [source, name] = functions[act] ?? functions.signIn!;
  const found = source.match(new RegExp(`((?:^ *\\/\\*\\*.*\\n)?)^( *)(?:async |function |async function )?${name}\\([^]*?\\n\\2\\}`, "m"));
  if (!found) return "";
  const [text, , indentation] = found;
  return text.split("\n").map((line) => line.startsWith(indentation!) ? line.slice(indentation!.length) : line).join("\n");
}

/** The act whose code made a request. */
function actOf({ kind, title }: Traffic): string {
  if (kind !== "http") return kind === "plug" ? "plug" : "";
  const [, verb] = title.match(/(create|join|start|cancel|leave|moves|guest)$/) ?? [];
  return { moves: "move", leave: "cancel", guest: "signIn" }[verb!] ?? verb ?? "";
}

const marks = { http: "HTTP", in: "event", out: "sent", plug: "plug" };
const time = (at: number) => new Date(at).toTimeString().slice(0, 8);

async function copy(button: HTMLButtonElement, text: string) {
  await navigator.clipboard.writeText(text).catch(() => {});
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

export function Drawer({ page, show }: { page: Page; show: (act: string) => void }) {
  const code = sourceOf(page.act);
  return (
    <>
      <section aria-labelledby="code">
        <div class="head"><h2 id="code">The code: {page.act}</h2>
          <button type="button" data-act="copy" aria-label={`Copy the code of ${page.act}`}
            onClick={(event) => copy(event.currentTarget, code)}>Copy</button></div>
        <pre tabIndex={0} aria-label={`Code of ${page.act}`}><code>{code}</code></pre>
      </section>
      <section aria-labelledby="wire">
        <h2 id="wire">On the wire</h2>
        <ol class="wire">
          {page.traffic.map((one) => {
            const act = actOf(one);
            return (
              <li key={one} class={one.kind}>
                <details>
                  <summary><span class="mark-of">{marks[one.kind]}</span> <span class="title">{one.title}{one.times > 1 && ` ×${one.times}`}</span> <time>{time(one.at)}</time></summary>
                  <pre tabIndex={0}><code>{one.detail}</code></pre>
                  {act && <button type="button" onClick={() => show(act)}>Show the code</button>}
                </details>
              </li>
            );
          })}
        </ol>
      </section>
    </>
  );
}
