// Tic-tac-toe. A game is its list of moves: the longer legal list wins, so that the order in which
// messages arrive does not matter, and a player who reloads asks for what was missed.
import { addButton, addLine, connect } from "./connect.js";

type Messages = { ask: Record<string, never>; moves: { moves: number[] } };
type Game = { moves: number[] };

const lines = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];
const isDecided = (moves: number[]) => {
  const ofLast = moves.filter((_, n) => n % 2 === (moves.length - 1) % 2);
  return lines.some((line) => line.every((cell) => ofLast.includes(cell)));
};
const areLegal = (moves: number[]) =>
  moves.every((cell, n) => cell >= 0 && cell < 9 && moves.indexOf(cell) === n && !isDecided(moves.slice(0, n)));

const parlor = await connect<Messages>();
const [open] = await parlor.rooms.mine(); // after a reload: the game that is going on
const room = open ?? await parlor.rooms.quick({ maxPlayers: 2, autoStart: true });

const slot = `match-${room.id}`;
const saved = await parlor.progress.load(slot);
let moves: number[] = saved?.state.moves ?? [];

const status = addLine();
const cells = Array.from({ length: 9 }, (_, cell) => addButton("", () => play(cell)));
const isMyTurn = () =>
  room.status === "STARTED" && !isDecided(moves) && room.participants[moves.length % 2]?.id === parlor.user?.id;

function draw() {
  cells.forEach((button, cell) => {
    const n = moves.indexOf(cell);
    button.textContent = n < 0 ? "·" : "XO"[n % 2];
    button.disabled = n >= 0 || !isMyTurn();
  });
  status.textContent = isDecided(moves) ? "Decided"
    : room.status === "CREATED" ? "Waiting for the other player"
    : isMyTurn() ? "Your move" : "Their move";
}

function play(cell: number) {
  if (!isMyTurn() || !areLegal([...moves, cell])) return;
  accept([...moves, cell]);
  room.send("moves", { moves });
}

function accept(newer: number[]) {
  moves = newer;
  draw();
  const longer = (mine: Game, theirs: Game) => (mine.moves.length >= theirs.moves.length ? mine : theirs);
  parlor.progress.save(slot, { moves }, { merge: longer }).catch(console.error);
}

room.on("message", ({ op, payload }) => {
  if (op === "ask") room.send("moves", { moves });
  else if (payload.moves.length > moves.length && areLegal(payload.moves)) accept(payload.moves);
});
room.on("change", draw);
room.on("resynced", () => room.send("ask", {})); // messages are not stored: the other one knows
room.send("ask", {});
draw();
