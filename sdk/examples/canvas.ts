// A room on a plain canvas. The fields of a room are always current, so a page only has to draw them
// when they have changed.
import { addButton, connect } from "./connect.js";

const parlor = await connect({ username: "Ann" });
const room = await parlor.rooms.quick({ maxPlayers: 4 });
const canvas = document.body.appendChild(document.createElement("canvas"));
const context = canvas.getContext("2d")!;

function draw() {
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillText(`${room.status} (${parlor.state})`, 10, 20);
  room.participants.forEach(({ id, username }, n) => {
    const isReady = room.seats.some((seat) => seat.userId === id && seat.ready);
    const crown = id === room.host?.id ? " (host)" : "";
    context.fillText(`${isReady ? "●" : "○"} ${username}${crown}`, 10, 40 + 20 * n);
  });
}

room.on("change", draw);
room.on("resynced", draw);
parlor.on("state", draw);
draw();

addButton("Ready", () => room.setReady());
addButton("Start", () => room.start().catch((e) => alert(e.detail)));
addButton("Leave", () => room.leave());
