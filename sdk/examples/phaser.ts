// A Phaser scene: one square for each player of the room, moved by the arrow keys.
import Phaser from "phaser";
import { connect } from "./connect.js";

type Messages = { pos: { x: number; y: number } };

const parlor = await connect<Messages>();
const room = await parlor.rooms.quick({ maxPlayers: 8 });
const sendEveryMs = 50;

class Arena extends Phaser.Scene {
  private readonly players = new Map<number, Phaser.GameObjects.Rectangle>();
  private sentAt = 0;

  create() {
    for (const { id } of room.participants) this.addPlayer(id);
    // Listeners end with the scene.
    const end = new AbortController();
    this.events.once("shutdown", () => end.abort());
    room.on("joined", ({ user }) => this.addPlayer(user.id), end);
    room.on("left", ({ userId }) => this.removePlayer(userId), end);
    room.on("message", ({ from, payload }) => this.players.get(from)?.setPosition(payload.x, payload.y), end);
    room.on("resynced", () => {
      const seated = new Set(room.participants.map(({ id }) => id));
      for (const id of this.players.keys()) if (!seated.has(id)) this.removePlayer(id);
      for (const id of seated) this.addPlayer(id);
    }, end);
  }

  override update(time: number, elapsedMs: number) {
    const me = this.players.get(parlor.user!.id);
    const keys = this.input.keyboard?.createCursorKeys();
    if (!me || !keys) return;
    const step = elapsedMs / 5;
    me.x += (+keys.right.isDown - +keys.left.isDown) * step;
    me.y += (+keys.down.isDown - +keys.up.isDown) * step;
    if (time - this.sentAt < sendEveryMs) return;
    this.sentAt = time;
    room.send("pos", { x: Math.round(me.x), y: Math.round(me.y) }, { volatile: true });
  }

  private addPlayer(id: number) {
    if (!this.players.has(id)) this.players.set(id, this.add.rectangle(200, 150, 16, 16, (id * 0x9e3779) & 0xffffff));
  }

  private removePlayer(id: number) {
    this.players.get(id)?.destroy();
    this.players.delete(id);
  }
}

new Phaser.Game({ width: 400, height: 300, scene: Arena });
