// The stones are a scene of Phaser. Words and buttons stay elements: a screen reader finds them.
import Phaser from "phaser";
import { Match } from "./match";
import "./style.css";

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const play = element<HTMLButtonElement>("play");
const leave = element<HTMLButtonElement>("leave");

const match = new Match();
play.onclick = match.play;
leave.onclick = match.leave;

const perRow = 6;
const size = 100;

class Table extends Phaser.Scene {
  #stones: Phaser.GameObjects.Arc[] = [];

  create() {
    match.subscribe(() => this.draw());
    this.draw();
  }

  /** Shows the stones. Those that may be taken are the last ones: a click takes a stone and all behind it. */
  draw() {
    const { stones, mostToTake } = match.view;
    while (this.#stones.length > stones) this.remove(this.#stones.pop()!);
    while (this.#stones.length < stones) this.#stones.push(this.place(this.#stones.length));
    this.#stones.forEach((stone, i) => stone.setFillStyle(stones - i <= mostToTake ? 0xf2a93b : 0x6b7280));
  }

  place(i: number): Phaser.GameObjects.Arc {
    const x = size * (i % perRow + 0.5);
    const y = size * (Math.floor(i / perRow) + 0.5);
    const stone = this.add.circle(x, y, size * 0.4).setInteractive({ useHandCursor: true });
    stone.on("pointerdown", () => match.take(match.view.stones - i));
    return stone;
  }

  remove(stone: Phaser.GameObjects.Arc) {
    stone.disableInteractive();
    this.tweens.add({ targets: stone, scale: 0, duration: 200, onComplete: () => stone.destroy() });
  }
}

function showWords() {
  const { balance, status, canPlay, canLeave } = match.view;
  element("balance").textContent = balance;
  element("status").textContent = status;
  play.disabled = !canPlay;
  leave.disabled = !canLeave;
}

match.subscribe(showWords);
showWords();
new Phaser.Game({
  type: Phaser.AUTO, parent: "stones", width: perRow * size, height: 2 * size, backgroundColor: "#14532d", scene: Table,
  scale: { mode: Phaser.Scale.FIT }, banner: false,
});
