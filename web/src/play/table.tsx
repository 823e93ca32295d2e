// What the players see: the lobby, the lanes, the buttons.
import type { Page } from "./main";
import { network } from "./plug";

type Run = (act: string, work?: () => Promise<void>) => void;

/** A button with a sentence beside it, which is also its description for screen readers. */
function Action({ act, label, note, run, work, primary, disabled }: {
  act: string; label: string; note: string; run: Run; work?: () => Promise<void>; primary?: boolean; disabled?: boolean;
}) {
  return (
    <div class="action">
      <button type="button" data-act={act} class={primary ? "primary" : ""} disabled={disabled}
        aria-describedby={`${act}-note`} onClick={() => run(act, work)}>{label}</button>
      <span id={`${act}-note`} class="note">{note}</span>
    </div>
  );
}

function Lane({ page, userId, name }: { page: Page; userId: number; name: string }) {
  const { game } = page;
  const { steps, rolled } = game.runner(userId);
  const finishLine = game.race?.finishLine ?? 0;
  const isMe = userId === game.parlor.user?.id;
  const isAway = game.room?.presence?.some((one) => one.userId === userId && !one.connected);
  return (
    <li class={`lane${isMe ? " mine" : ""}`}>
      <p class="who"><b>{name}</b>{isMe && <span class="you">you</span>}
        {isAway && !isMe && <span class="away">offline, the seat is kept</span>}
        <span class="steps">{rolled ? `rolled ${rolled}` : ""}</span>
        <span class="count">{finishLine ? `${steps} of ${finishLine}` : ""}</span></p>
      <div class="track" role="img" aria-label={`${name}: ${finishLine ? `${steps} of ${finishLine} steps` : "at the start"}`}>
        <div class="piece" style={{ "--at": String(steps / (finishLine || 1)) }} />
      </div>
    </li>
  );
}

/** What the race came to, for this player. */
function Result({ page }: { page: Page }) {
  const { room, won, parlor, stake } = page.game;
  if (room!.status === "CANCELLED") return <p class="result" role="status">Called off: every stake is back.</p>;
  const mine = Number(won[parlor.user!.id] ?? 0);
  const text = mine > Number(stake.entry) ? `You won ${mine.toFixed(2)}. The pot is yours.`
    : mine > 0 ? `A tie: ${mine.toFixed(2)} is back.` : "You lost this one.";
  return <p class={`result${mine > 0 ? " good" : ""}`} role="status">{text}</p>;
}

function Lobby({ page, run }: { page: Page; run: Run }) {
  const { game } = page;
  const { entry } = game.stake;
  return (
    <section class="card" aria-labelledby="lobby">
      <h2 id="lobby">Find an opponent</h2>
      <div class="actions">
        <Action act="create" label="Open a race" primary disabled={page.isBusy} run={run} work={() => game.create()}
          note={`Your stake is ${entry}. A second tab is a second player.`} />
        <Action act="bot" label="Play against a bot" disabled={page.isBusy} run={run}
          note="It uses the same SDK, in a worker of this page." />
      </div>
      <h3>Open races</h3>
      {game.races.length === 0 && <p class="note">None. Open one, then <a href="/play" target="_blank" rel="noopener">open this page in a second tab</a>.</p>}
      <ul class="races">
        {game.races.map((race) => (
          <li key={race.roomId}>
            <span><b>{race.creator.username}</b> waits with a stake of {entry}</span>
            <button type="button" data-act="join" disabled={page.isBusy}
              aria-label={`Join the race of ${race.creator.username}`}
              onClick={() => run("join", () => game.join(race.roomId))}>Join</button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Race({ page, run }: { page: Page; run: Run }) {
  const { game } = page;
  const room = game.room!;
  const me = game.parlor.user!.id;
  const isHost = room.host.id === me;
  const isFull = room.participants.length === 2;
  const left = game.race && Math.max(0, Math.ceil((Date.parse(game.race.endsAt) - game.parlor.time()) / 1000));
  const hasEnded = room.status !== "CREATED" && room.status !== "STARTED";
  return (
    <section class="card" aria-labelledby="race">
      <div class="head">
        <h2 id="race">Race {room.code}</h2>
        <p class="pot">Pot <b>{Number(room.totalWager).toFixed(2)} {room.entryToken?.tokenId}</b></p>
        {room.status === "STARTED" && left !== undefined && <p class="clock">{left} s left</p>}
      </div>
      <ul class="lanes">
        {room.participants.map((user) => <Lane key={user.id} page={page} userId={user.id} name={user.username} />)}
        {!isFull && !hasEnded && <li class="lane empty"><p>A free lane. <a href="/play" target="_blank" rel="noopener">Open a second tab</a>, or call the bot.</p></li>}
      </ul>
      {hasEnded && <Result page={page} />}
      {!hasEnded && (
        <div class="actions">
          {room.status === "STARTED" && <Action act="move" label="Roll" primary disabled={page.isBusy} run={run} work={() => moveAndRest(page)}
            note={`One to three steps. The referee rolls.`} />}
          {room.status === "CREATED" && isHost && <Action act="start" label="Start" primary disabled={page.isBusy || !isFull} run={run} work={() => game.start()}
            note={isFull ? "Both stakes are in." : "When somebody has joined."} />}
          {room.status === "CREATED" && !isHost && <p class="note" role="status">{room.host.username} starts the race.</p>}
          {room.status === "CREATED" && isHost && !isFull && <Action act="bot" label="Call a bot" disabled={page.isBusy} run={run} note="It takes the free lane." />}
          <Action act="cancel" label={room.status === "STARTED" ? "Give up" : isHost ? "Call it off" : "Leave"} disabled={page.isBusy} run={run} work={() => game.cancel()}
            note={room.status === "STARTED" ? "Your stake stays in the pot." : "Your stake comes back."} />
        </div>
      )}
    </section>
  );
}

/** Moves, and keeps the button still until the referee takes the next one. */
async function moveAndRest({ game }: Page) {
  await game.move();
  await new Promise((resolve) => setTimeout(resolve, game.race?.cooldownMs));
}

export function Table({ page, run }: { page: Page; run: Run }) {
  const { game } = page;
  const { parlor, room } = game;
  const hasEnded = room && room.status !== "CREATED" && room.status !== "STARTED";
  const moves = (room?.seats ?? []).reduce((sum, seat) => sum + game.runner(seat.userId).moves, 0);
  return (
    <>
      <div class="bar">
        <p class="me"><b>{parlor.user?.username ?? "…"}</b> <span id="balance" class="balance">{page.balance}</span></p>
        <p class={`state ${parlor.state}`} id="state" role="status">{parlor.state}</p>
      </div>
      {page.error && <p class="error" role="alert">{page.error}</p>}
      {room && <Race page={page} run={run} />}
      {(!room || hasEnded) && parlor.user && <Lobby page={page} run={run} />}
      <section class="card cable" aria-labelledby="cable">
        <h2 id="cable">The connection</h2>
        <div class="actions">
          <Action act="plug" label="Pull the plug" run={run}
            note="Cuts this page off for a moment. The room goes on, and the SDK catches up." />
        </div>
        <p id="tally" class="tally" data-pulls={page.pulls} data-out={String(network.isCut)} data-events={page.tally.events} data-lost={page.tally.lost}
          data-doubled={page.tally.doubled} data-moves={moves} role="status">
          Pulled: {page.pulls} · events: {page.tally.events} · moves: {moves} · <b>lost: {page.tally.lost}</b> · doubled: {page.tally.doubled}
        </p>
      </section>
    </>
  );
}
