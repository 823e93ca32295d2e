// Tic-tac-toe without a server of its own. The board is the room's shared state: each player writes
// their own cells only. The room has the turn, which passes on at its deadline. The game needs
// settings.stateKeys {"cells.": "owner"}.
import { addButton, addLine, connect } from "./connect.js";

const turnSeconds = 30;
const lines = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];

const parlor = await connect();
await parlor.ready;
const me = parlor.user!.id;
const [open] = await parlor.rooms.mine(); // after a reload: the game that is going on
const room = open ?? await parlor.rooms.quick({ maxPlayers: 2, autoStart: true, settlement: "consensus" });

const status = addLine();
const buttons = Array.from({ length: 9 }, (_, cell) => addButton("", () => play(cell)));

const players = () => room.seats.map((seat) => seat.userId); // X first: who opened the room
const cellsOf = (player: number) => (room.shared.value[`cells.${player}`] ?? []) as number[];
const ownerOf = (cell: number) => players().findIndex((player) => cellsOf(player).includes(cell));
const hasWon = (player: number) => lines.some((line) => line.every((cell) => cellsOf(player).includes(cell)));
const isOver = () => players().some(hasWon) || buttons.every((_, cell) => ownerOf(cell) >= 0);
const isMyTurn = () => room.status === "STARTED" && room.turn?.userId === me && !isOver();

function draw() {
  buttons.forEach((button, cell) => {
    button.textContent = "·XO"[ownerOf(cell) + 1];
    button.disabled = ownerOf(cell) >= 0 || !isMyTurn();
  });
  const secondsLeft = room.turn ? Math.max(0, Math.ceil((Date.parse(room.turn.deadline) - parlor.time()) / 1000)) : "–";
  status.textContent = room.status === "CANCELLED" ? "Nobody won"
    : isOver() ? (hasWon(me) ? "You won" : players().some(hasWon) ? "You lost" : "A draw")
    : room.status === "CREATED" ? "Waiting for the other player"
    : room.status === "FINISHED" ? "The other player has left"
    : `${isMyTurn() ? "Your move" : "Their move"}: ${secondsLeft} s`;
}

function play(cell: number) {
  if (!isMyTurn() || ownerOf(cell) >= 0) return;
  room.shared.set({ [`cells.${me}`]: [...cellsOf(me), cell] }).catch(console.error);
}

/** The host's page passes the turn on after a move. While that page is away, the deadline does. */
function giveTurn(player: number | undefined) {
  if (player === undefined || room.host.id !== me || room.status !== "STARTED" || isOver()) return;
  room.setTurn(player, turnSeconds).catch(console.error);
}

function begin() {
  if (!room.turn) giveTurn(players()[0]);
}

let isReported = false;
/** Both players report the same result, which ends the room. */
function reportEnd() {
  if (room.status !== "STARTED" || !isOver() || isReported) return;
  isReported = true;
  const placeOf = (player: number) => (hasWon(player) || !players().some(hasWon) ? 1 : 2);
  room.finish(players().map((userId) => ({ userId, place: placeOf(userId) }))).catch(console.error);
}

room.on("started", begin);
room.on("state", ({ patch }) => {
  const mover = room.turn?.userId;
  if (mover && `cells.${mover}` in patch) giveTurn(players().find((player) => player !== mover));
});
room.on("change", () => {
  draw();
  reportEnd();
});
setInterval(draw, 1000);
draw();
begin();
reportEnd();
