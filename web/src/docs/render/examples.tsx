// The examples of the SDK: the code, and on a node for development two frames that play.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { HTML, renderFrame } from "./layout";
import { highlight, renderInline } from "./markdown";

/** An example, which is sdk/examples/<name>.ts. */
export interface Example {
  name: string;
  title: string;
  how: string; // to play it, for two players
}

export const examples: Example[] = [
  { name: "canvas", title: "A room on a canvas", how: "Press Ready in both, then Start where the crown is." },
  { name: "arena", title: "An arena at 20 Hz", how: "Move the pointer over one canvas, and see the square in the other." },
  { name: "turn_based", title: "Tic-tac-toe with turns", how: "Take turns: each player writes the own cells only." },
  {
    name: "duel", title: "A duel for a stake",
    how: "Press Play in both. This page has no server of the game, so let one player give up: the other one wins the pot.",
  },
  { name: "phaser", title: "A Phaser scene", how: "Click into a frame, then use the arrow keys." },
];

const codeOf = (root: string, name: string) => readFileSync(join(root, "sdk/examples", `${name}.ts`), "utf8");

/** ExamplePage has the code of an example. Where it can be played it has two frames, which are empty until then. */
export function ExamplePage({ root, example, isPlayable }: { root: string; example: Example; isPlayable: boolean }) {
  const [, about] = codeOf(root, example.name).match(/^((?:\/\/.*\n)+)/)!;
  const sentence = about!.replace(/^\/\/ ?/gm, "").replaceAll("\n", " ").trim();
  return (
    <>
      <h1>{example.title}</h1>
      <HTML as="p" class="lead" html={renderInline(sentence)} />
      {isPlayable ? (
        <>
          <p>{example.how}</p>
          <p><button type="button" class="primary" data-act="play">Play with two players</button></p>
          <div class="players">
            {["The first player", "The second player"].map((title) => (
              <iframe title={title} data-src={`/docs/examples/${example.name}/frame`} hidden />
            ))}
          </div>
        </>
      ) : (
        <>
          <p>Two players play it in this page on a node for development. Start one, and open its <code>/docs/examples/{example.name}</code>:</p>
          <HTML html={highlight("parlor dev", "bash")} />
        </>
      )}
      <h2 id="code">The code</h2>
      <HTML html={highlight(codeOf(root, example.name), "typescript")} />
      <h2 id="connect">What every example begins with</h2>
      <HTML html={highlight(codeOf(root, "connect"), "typescript")} />
    </>
  );
}

/** Returns the page of a frame, in which one player plays. */
export const renderExampleFrame = (example: Example) => renderFrame(example.title, `example-${example.name}.js`);

export function ExamplesPage() {
  return (
    <>
      <h1>Examples</h1>
      <p class="lead">Five small games, each a whole page of one file. On a node for development they are played here.</p>
      <h2 class="visually-hidden">All examples</h2>
      <ul class="codes">
        {examples.map(({ name, title }) => <li><a href={`/docs/examples/${name}`}>{title}</a></li>)}
      </ul>
    </>
  );
}
