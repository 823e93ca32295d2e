// The page around the game: signs in, shows the race, and a drawer with what goes over the wire.
import { init, type Parlor } from "/sdk/v1.mjs";
import { render } from "preact";
import { startTheme } from "../shared/theme";
import { Game, type Stake } from "./game";
import { network, pull } from "./plug";
import { Tally } from "./tally";
import { Table } from "./table";

const outageMs = 700;
const clockMs = 1000; // how often the clock of a race is drawn

/** What the page shows beside the game. */
export interface Page {
  game: Game;
  error: string;
  balance: string;
  act: string; // whose code the drawer shows
  isBusy: boolean;
  pulls: number;
  tally: Tally;
}

/** Signs in. Each tab is a player of its own, because sessionStorage belongs to one tab. */
function signIn(stake: Stake): Parlor {
  return init({
    gameId: stake.gameId, storage: sessionStorage, fetch: network.fetch, WebSocket: network.WebSocket,
  });
}

/** Tells the other tabs of this browser that there may be another race to join. */
const races = new BroadcastChannel("races");

async function startBot(page: Page) {
  if (page.game.room?.status !== "CREATED") await page.game.create();
  const bot = new Worker(document.querySelector<HTMLElement>("#app")!.dataset.bot!, { type: "module" });
  bot.postMessage({ roomId: page.game.room!.roomId, stake: page.game.stake });
}

async function main() {
  const app = document.querySelector<HTMLElement>("#app")!;
  const code = document.querySelector<HTMLElement>("#drawer [data-part=code]")!;
  const page = { error: "", balance: "", act: "signIn", isBusy: false, pulls: 0, tally: new Tally(0) } as any as Page;
  let drawer: typeof import("./drawer") | undefined; // once it was opened
  let drawn = false; // once for all changes of a moment
  const draw = () => {
    if (drawn || !page.game) return;
    drawn = true;
    queueMicrotask(() => {
      drawn = false;
      render(<Table page={page} run={run} />, app);
      if (drawer) render(<drawer.Drawer act={page.act} />, code);
    });
  };

  network.listen(draw);
  const stake: Stake = await (await network.fetch("/play/game.json")).json();
  const parlor = signIn(stake);
  page.game = new Game(parlor, stake, draw);
  app.replaceChildren();

  /** Does what a button says, and shows why it could not be done. */
  async function run(act: string, work?: () => Promise<void>) {
    page.error = "";
    page.act = act;
    if (act === "plug") {
      page.pulls++;
      pull(outageMs);
      return draw();
    }
    page.isBusy = true;
    draw();
    const before = page.game.room;
    try {
      await (act === "bot" ? startBot(page) : work!());
    } catch (error: any) {
      page.error = error.detail ?? (network.isCut ? "The plug is out: try again in a moment." : error.message);
    }
    page.isBusy = false;
    if (page.game.room !== before) count();
    if (act !== "move") races.postMessage("changed");
    draw();
  }

  /** Counts the events of the room that was entered. */
  function count() {
    const { room } = page.game;
    const tally = page.tally = new Tally(room?.seq ?? 0);
    room?.on("change", ({ seq }) => { if (seq) tally.note(seq); });
  }

  parlor.on("state", draw);
  parlor.on("error", (error) => { page.error = error.message; draw(); });
  parlor.on("balance", ({ tokenId, amount }) => { page.balance = parlor.wallet.format(amount, tokenId); draw(); });
  await parlor.ready;
  const token = (await parlor.wallet.balances()).find(({ id }) => id === stake.entryTokenId);
  if (token && !page.balance) page.balance = parlor.wallet.format(token.amount, token.tokenId);
  await page.game.comeBack();
  count();
  draw();
  setInterval(() => { if (page.game.room?.status === "STARTED") draw(); }, clockMs);
  /** Looks for open races. */
  const look = () => {
    const { room } = page.game;
    if (room?.status !== "CREATED" && room?.status !== "STARTED") page.game.look().catch(() => {});
  };
  races.onmessage = look;
  addEventListener("focus", look); // of players with another browser
  await page.game.look();

  /** Loads what the drawer shows. */
  return async () => {
    drawer = await import("./drawer");
    draw();
    await drawer.showDevtools(page, (act) => { page.act = act; draw(); });
  };
}

const started = main();
const toggle = document.querySelector<HTMLButtonElement>("[data-act=drawer]")!;
let loading: Promise<void> | undefined;
toggle.addEventListener("click", () => {
  const isOpen = document.body.classList.toggle("with-drawer");
  toggle.setAttribute("aria-expanded", String(isOpen));
  loading ??= started.then((loadDrawer) => loadDrawer());
  void loading.then(() => {
    if (isOpen && innerWidth < 960) document.querySelector("#drawer")!.scrollIntoView(); // it is below the game
  });
});
startTheme(document.querySelector("[data-act=theme]"));
started.catch((error) => {
  document.querySelector("#app")!.textContent = `The demo could not start: ${error.message}`;
});
