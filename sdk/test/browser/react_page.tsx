// The page of react.test.ts: on the server its text, in a browser the same under StrictMode.
import { ParlorProvider, useBalances, useBoard, useParlor, useRoom } from "@parlor-games/react";
import type { Room } from "@parlor-games/sdk";
import { memo, StrictMode, useState } from "react";

/** Renders again only for another room: it sees a change because each change is another copy. */
const Players = memo(function Players({ room }: { room: Room }) {
  const { room: same } = useRoom(room); // a copy that is passed on
  const players = room.seats.map((seat) => `${seat.userId}${seat.ready ? " ready" : ""}`).join();
  return <p id="players">{`${players} ${room.shared.value.score ?? "-"} ${same?.status}`}</p>;
});

function Game() {
  const { parlor, state, user } = useParlor();
  const [wanted, setWanted] = useState<Room | string | null>(null);
  const { room, error } = useRoom(wanted);
  const { balances } = useBalances();
  const { board } = useBoard("react", { top: 3 });
  Object.assign(globalThis, { parlor, setWanted, room });
  return (
    <>
      <p id="state">{`${state} ${user ? "known" : "unknown"}`}</p>
      <p id="balance">{balances?.find((b) => b.tokenId === "GOLD")?.volume ?? "-"}</p>
      <p id="board">{board ? board.entries.map((e) => e.score).join() || "empty" : "-"}</p>
      <p id="error">{error ? (error as { code?: string }).code : "-"}</p>
      {room && <Players room={room} />}
    </>
  );
}

export function App({ api }: { api: string }) {
  const [isShown, setShown] = useState(true);
  Object.assign(globalThis, { setShown });
  const options = { gameId: 1, baseUrl: api }; // another object each time
  return <StrictMode><ParlorProvider options={options}>{isShown && <Game />}</ParlorProvider></StrictMode>;
}
