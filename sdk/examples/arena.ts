// An arena: each player's position 20 times a second. What is old is worthless, so nothing waits and
// nothing is repeated. Others are drawn 100 ms in the past, between two known positions.
import { addLine, connect } from "./connect.js";

type Position = { x: number; y: number; t: number };

const sendEveryMs = 50;
const delayMs = 2 * sendEveryMs;

const parlor = await connect<{ pos: Position }>();
const room = await parlor.rooms.quick({ maxPlayers: 8 });
const canvas = document.body.appendChild(document.createElement("canvas"));
const context = canvas.getContext("2d")!;
const status = addLine();

const me = { x: 150, y: 75 };
canvas.onpointermove = (e) => Object.assign(me, { x: e.offsetX, y: e.offsetY });

const others = new Map<number, Position[]>();
room.on("message", ({ from, payload }) => {
  others.set(from, [...(others.get(from) ?? []), payload].slice(-10));
});
room.on("left", ({ userId }) => others.delete(userId));

// `time()` is the service's clock, which all players share.
setInterval(() => {
  room.send("pos", { x: Math.round(me.x), y: Math.round(me.y), t: parlor.time() }, { volatile: true });
}, sendEveryMs);

function positionAt(known: Position[], t: number): Position {
  const next = known.findIndex((position) => position.t > t);
  if (next <= 0) return known[next < 0 ? known.length - 1 : 0]; // nothing on one of the sides
  const [from, to] = [known[next - 1], known[next]];
  const part = (t - from.t) / (to.t - from.t);
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part, t };
}

requestAnimationFrame(function draw() {
  context.clearRect(0, 0, canvas.width, canvas.height);
  const seen = [...others.values()].map((known) => positionAt(known, parlor.time() - delayMs));
  for (const { x, y } of [me, ...seen]) context.fillRect(x - 4, y - 4, 8, 8);
  status.textContent = `${parlor.state}, ${room.participants.length} players`;
  requestAnimationFrame(draw);
});
