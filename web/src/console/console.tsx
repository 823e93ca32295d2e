// The operator's console: a page over the API that any script could be.
import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { startTheme } from "../shared/theme";
import { calls, session, signedIn, signOut, startSession } from "./api";
import { BoardScreen, BoardsScreen } from "./boards";
import { DisputesScreen } from "./disputes";
import { formatClock } from "./format";
import { GameScreen, GamesScreen } from "./games";
import { LedgerScreen } from "./ledger";
import { NodesScreen } from "./nodes";
import { PlayerScreen, PlayersScreen } from "./players";
import { RoomScreen, RoomsScreen } from "./rooms";
import { TokensScreen } from "./tokens";
import { TournamentScreen, TournamentsScreen } from "./tournaments";
import { TrailScreen } from "./trail";
import { ActDialog, Behind, isBadOutcome, outcome } from "./ui";
import { WebhookScreen } from "./webhooks";

/** The part of the address behind "#/", "rooms/<id>". */
const route = signal("");

const screens = [
  { name: "rooms", text: "Rooms" },
  { name: "disputes", text: "Disputes" },
  { name: "players", text: "Players" },
  { name: "leaderboards", text: "Leaderboards" },
  { name: "tournaments", text: "Tournaments" },
  { name: "games", text: "Games" },
  { name: "tokens", text: "Tokens" },
  { name: "ledger", text: "Ledger" },
  { name: "trail", text: "Trail" },
  { name: "nodes", text: "Nodes" },
];

function Screen() {
  const [name, id] = route.value.split("/") as [string, string?];
  switch (name) {
    case "disputes": return <DisputesScreen />;
    case "players": return id ? <PlayerScreen key={id} id={id} /> : <PlayersScreen />;
    case "games": return id ? <GameScreen key={id} id={id} /> : <GamesScreen />;
    case "leaderboards": return id ? <BoardScreen key={id} id={id} /> : <BoardsScreen />;
    case "tournaments": return id ? <TournamentScreen key={id} id={id} /> : <TournamentsScreen />;
    case "tokens": return <TokensScreen />;
    case "ledger": return <LedgerScreen />;
    case "trail": return <TrailScreen />;
    case "webhooks": return <WebhookScreen key={id} id={id ?? ""} />;
    case "nodes": return <NodesScreen />;
    default: return id ? <RoomScreen key={id} id={id} /> : <RoomsScreen />;
  }
}

function ThemeButton() {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => startTheme(button.current), []);
  return <button type="button" ref={button} class="plain" hidden><span aria-hidden="true">◐</span></button>;
}

function App() {
  const [linkFault, setLinkFault] = useState<string | null>(null);
  const main = useRef<HTMLElement>(null);
  const shown = useRef("");
  useEffect(() => { void startSession().then((fault) => { setLinkFault(fault); showRoute(); }); }, []);
  useEffect(() => effect(() => {
    if (shown.current && shown.current !== route.value) main.current?.focus();
    shown.current = route.value;
  }), []);
  const screen = route.value.split("/")[0];
  const current = screen === "webhooks" ? "games" : screen; // where its list is
  useEffect(() => { // on a narrow screen the list of screens is wider than that
    const show = () => document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    show();
    addEventListener("resize", show);
    return () => removeEventListener("resize", show);
  }, [current, signedIn.value]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the content</a>
      <header class="bar">
        <p class="brand">Parlor <span class="muted">console</span></p>
        {signedIn.value ? (
          <nav aria-label="Screens">
            <ul>{screens.map((s) => (
              <li key={s.name}><a href={`#/${s.name}`} aria-current={current === s.name ? "page" : undefined}>{s.text}</a></li>
            ))}</ul>
          </nav>
        ) : <span class="grow" />}
        <div class="who">
          {signedIn.value && session.value
            ? <><span class="muted" title={`Until ${formatClock(session.value.expiresAt)}. The trail names you operator:${session.value.operator}`}>
                operator {session.value.operator}<span class="until">, until {formatClock(session.value.expiresAt)}</span></span>
              <button type="button" onClick={() => void signOut()}>Sign out</button></>
            : null}
          <ThemeButton />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {signedIn.value === null ? <p class="muted" role="status">Signing in…</p>
          : signedIn.value ? <><Screen /><Behind /></> : <SignedOut fault={linkFault} />}
      </main>
      <p class={`outcome${isBadOutcome.value ? " bad" : ""}`} role="status" aria-live="polite">{outcome.value}</p>
      <ActDialog />
    </>
  );
}

function SignedOut({ fault }: { fault: string | null }) {
  return (
    <div class="narrow">
      <h1>Sign in</h1>
      {fault ? <p class="notice bad" role="alert">{fault}</p> : null}
      <p>The console has no password. A link signs one browser in for eight hours; it is good once, for a minute:</p>
      <pre tabIndex={0} aria-label="The command"><code>PARLOR_ADMIN_KEY=$ADMIN_KEY parlor console --url {location.origin}</code></pre>
      <p>Open what it prints in this browser. A session ends when you sign out, or when its operator's key leaves the settings.</p>
    </div>
  );
}

function showRoute(): void {
  const next = location.hash.replace(/^#\//, "") || "rooms";
  if (next === route.value) return;
  calls.value = [];
  outcome.value = "";
  route.value = next;
  const name = next.split("/")[0];
  const title = name === "webhooks" ? "Webhook" : screens.find((s) => s.name === name)?.text ?? "Rooms";
  document.title = `${title} · Parlor console`;
  scrollTo(0, 0);
}

addEventListener("hashchange", () => {
  if (location.hash.startsWith("#link=")) location.reload(); // a link was pasted into an open console
  else showRoute();
});
render(<App />, document.getElementById("app")!);
