// What pages of /docs do beyond being read: the theme, and copying code.
import { startTheme } from "../shared/theme";

startTheme(document.querySelector<HTMLButtonElement>("[data-act=theme]"));

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
