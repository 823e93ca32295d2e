// The page: what the match shows, as elements.
import { Match } from "./match";
import "./style.css";

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const play = element<HTMLButtonElement>("play");
const leave = element<HTMLButtonElement>("leave");

const match = new Match();
play.onclick = match.play;
leave.onclick = match.leave;

/** Shows the stones. Those that may be taken are the last ones: a click takes a stone and all behind it. */
function draw() {
  const { balance, status, stones, mostToTake, canPlay, canLeave } = match.view;
  element("balance").textContent = balance;
  element("status").textContent = status;
  play.disabled = !canPlay;
  leave.disabled = !canLeave;
  element("stones").replaceChildren(...Array.from({ length: stones }, (_, i) => {
    const button = document.createElement("button");
    const taken = stones - i;
    button.textContent = String(taken);
    button.title = `Take ${taken}`;
    button.disabled = taken > mostToTake;
    button.onclick = () => match.take(taken);
    return button;
  }));
}

match.subscribe(draw);
draw();
