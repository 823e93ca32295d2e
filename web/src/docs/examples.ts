// Starts both players of an example, when somebody wants to play: each makes a guest.
const start = document.querySelector<HTMLButtonElement>("[data-act=play]")!;

start.addEventListener("click", () => {
  for (const frame of document.querySelectorAll<HTMLIFrameElement>("iframe[data-src]")) {
    frame.src = frame.dataset.src!;
    frame.hidden = false;
  }
  start.textContent = "Start again";
});
export {};
