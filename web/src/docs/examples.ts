// Starts both players of an example, when somebody wants to play: each makes a guest.
const start = document.querySelector<HTMLButtonElement>("[data-act=play]")!;
const frames = [...document.querySelectorAll<HTMLIFrameElement>("iframe[data-src]")];

/** Resolves when the page of a frame shows something: then its player has a room, which the next one finds. */
const whenShown = (frame: HTMLIFrameElement) => new Promise<void>((resolve) => {
  const timer = setInterval(() => {
    if (!frame.contentDocument?.body?.childElementCount) return;
    clearInterval(timer);
    resolve();
  }, 50);
});

start.addEventListener("click", async () => {
  start.disabled = true;
  for (const frame of frames) frame.removeAttribute("src");
  for (const frame of frames) {
    frame.hidden = false;
    frame.src = frame.dataset.src!;
    await whenShown(frame);
  }
  start.disabled = false;
  start.textContent = "Start again";
});
export {};
