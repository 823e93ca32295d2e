// What the harnesses of the engines share: their texts and buttons are elements of the page.

export function addText(text = ""): HTMLElement {
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

/** What the die of this window shows. */
export const roll = Number(new URLSearchParams(location.search).get("roll"));

/** Returns the text of a file of sdk/engines. */
export async function readSource(path: string): Promise<string> {
  const response = await fetch(`/engines/${path}`);
  if (!response.ok) throw new Error(`there is no ${path}`);
  return response.text();
}
