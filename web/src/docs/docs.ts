// What pages of /docs do beyond being read: the theme, the search, the address of the node, and copying code.
import { startTheme } from "../shared/theme";
import { startSearch } from "./search_box";

startTheme(document.querySelector<HTMLButtonElement>("[data-act=theme]"));
startSearch(document.querySelector<HTMLFormElement>("#search")!);

/** The pages are written for a node at the default port; they show the address of the one that serves them. */
const written = /\bhttp:\/\/localhost:8080\b/g;
for (const code of document.querySelectorAll("main code")) {
  if (!code.textContent!.includes("localhost:8080")) continue;
  const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.nodeValue = texts.currentNode.nodeValue!.replace(written, location.origin);
}

for (const block of document.querySelectorAll<HTMLPreElement>("main pre:not([id])")) {
  if (!navigator.clipboard) break; // not a secure context
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.dataset.act = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent ?? "");
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  const frame = document.createElement("div");
  frame.className = "block";
  block.replaceWith(frame);
  frame.append(block, button);
}
