// A second player in a worker of its own: the same SDK, the same game, no page.
import { init } from "/sdk/v1.mjs";
import { Game, type Stake } from "./game";

const pauseMs = 900; // between two moves: the bot can be beaten

addEventListener("message", async ({ data }: MessageEvent<{ roomId: string; stake: Stake }>) => {
  const { roomId, stake } = data;
  const parlor = init({ gameId: stake.gameId, username: "Bot", storage: false });
  await parlor.ready;
  const game = new Game(parlor, stake, () => {});
  await game.join(roomId);
  const room = game.room!;
  const end = () => {
    parlor.close();
    close();
  };
  const roll = async () => {
    await game.move().catch(() => {}); // too early, or too late
    if (room.status === "STARTED") setTimeout(roll, pauseMs);
  };
  room.on("finished", end);
  room.on("cancelled", end);
  room.on("started", () => setTimeout(roll, pauseMs));
});
