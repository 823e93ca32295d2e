// A second player in a worker of its own: the same SDK, the same game, no page.
import { init } from "/sdk/v1.mjs";
import { Game, type Messages } from "./game";
import type { Rules } from "./referee";

const pauseMs = 900; // between two moves: the bot can be beaten

addEventListener("message", async ({ data }: MessageEvent<{ roomId: string; rules: Rules }>) => {
  const { roomId, rules } = data;
  const parlor = init<Messages>({ gameId: rules.gameId, username: "Bot", storage: false });
  await parlor.ready;
  const game = new Game(parlor, rules, () => {});
  await game.join(roomId);
  const timer = setInterval(async () => {
    const { status } = game.room!;
    if (status === "STARTED") await game.move().catch(() => {}); // too early, or too late
    else if (status !== "CREATED") {
      clearInterval(timer);
      parlor.close();
      close();
    }
  }, pauseMs);
});
