// The drawer: the code of the last act, and the devtools of the SDK. Loaded when it is opened first.
import gameSource from "source:./game.ts";
import mainSource from "source:./main.tsx";
import plugSource from "source:./plug.ts";
import type { Start } from "../../../sdk/src/devtools/devtools";
import type { Page } from "./main";
import { network } from "./plug";

const devtools: string = "/sdk/devtools.v1.js"; // of the node, not of this bundle

/** The function behind each button, and where it is. */
const functions: Record<string, [source: string, name: string]> = {
  signIn: [mainSource, "signIn"], create: [gameSource, "create"], join: [gameSource, "join"], start: [gameSource, "start"],
  move: [gameSource, "move"], cancel: [gameSource, "cancel"], bot: [mainSource, "startBot"], plug: [plugSource, "pull"],
};

/** Cuts a function with its comment out of a source. It ends where the line has its indentation again. */
function sourceOf(act: string): string {
  const [source, name] = functions[act] ?? functions.signIn!;
  const found = source.match(new RegExp(`((?:^ *\\/\\*\\*.*\\n)?)^( *)(?:export )?(?:async |function |async function )?${name}\\([^]*?\\n\\2\\}`, "m"));
  if (!found) return "";
  const [text, , indentation] = found;
  return text.split("\n").map((line) => line.startsWith(indentation!) ? line.slice(indentation!.length) : line).join("\n");
}

/** The act whose code made a call, if one did. */
function actOf({ method, path }: { method: string; path: string }): string | undefined {
  if (path === "room.call") return "move";
  const [, verb] = (method === "POST" && path.match(/(create|join|start|cancel|leave|guest)$/)) || [];
  return { leave: "cancel", guest: "signIn" }[verb!] ?? verb;
}

async function copy(button: HTMLButtonElement, text: string) {
  await navigator.clipboard.writeText(text).catch(() => {});
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

export function Drawer({ act }: { act: string }) {
  const code = sourceOf(act);
  return (
    <section aria-labelledby="code">
      <div class="head"><h2 id="code">The code: {act}</h2>
        <button type="button" data-act="copy" aria-label={`Copy the code of ${act}`}
          onClick={(event) => copy(event.currentTarget, code)}>Copy</button></div>
      <pre tabIndex={0} aria-label={`Code of ${act}`}><code>{code}</code></pre>
    </section>
  );
}

/** Shows the devtools in the drawer. A call in them leads to the code that made it. */
export async function showDevtools({ game }: Page, showCode: (act: string) => void) {
  await import(devtools);
  const { parlorDebug } = globalThis as unknown as { parlorDebug(parlor: unknown, options: object, start: Start): void };
  parlorDebug(game.parlor, { gameId: game.stake.gameId }, {
    network, place: document.querySelector("#drawer [data-part=devtools]")!,
    buttonOf(call) {
      const act = actOf(call);
      return act ? { label: "Show the code", press: () => showCode(act) } : undefined;
    },
  });
}
