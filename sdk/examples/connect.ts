// What every example begins with: the client of game 1 on the node that `?api=` names.
import { init, type Options } from "@parlor-games/sdk";

export function connect<Messages>(options: Partial<Options> = {}) {
  const baseUrl = new URLSearchParams(location.search).get("api") ?? undefined;
  return init<Messages>({ gameId: 1, baseUrl, ...options });
}

/** Adds a line of text to the page and returns it. */
export function addLine(text = ""): HTMLElement {
  const line = document.body.appendChild(document.createElement("p"));
  line.textContent = text;
  return line;
}

export function addButton(text: string, press: () => unknown): HTMLButtonElement {
  const button = document.body.appendChild(document.createElement("button"));
  button.textContent = text;
  button.onclick = press;
  return button;
}
