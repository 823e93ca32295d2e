// A duel for 2.5 GOLD. The service moves the money in the same step as the seat, and the game's own
// server reports who won, so no page can win by lying.
import { ParlorError } from "@parlor-games/sdk";
import { addButton, addLine, connect } from "./connect.js";

const parlor = await connect();
const money = addLine();
const status = addLine();

const showBalance = (volume: number) => { money.textContent = `You have ${parlor.wallet.format(volume, "GOLD")}`; };
const gold = await parlor.wallet.balance("GOLD");
showBalance(gold.volume);
parlor.on("balance", (now) => now.tokenId === "GOLD" && showBalance(now.volume));

// What a page before this one has bought and never heard about is settled now; nothing is paid twice.
const pending = await parlor.store.pending();
if (pending.length) addLine(`${pending.length} purchases are being settled`);

const play = addButton("Play for 2.50", async () => {
  play.disabled = true;
  try {
    const room = await parlor.rooms.quick({ maxPlayers: 2, entryTokenId: gold.id, roomEntry: "2.5", autoStart: true });
    status.textContent = "Waiting for an opponent";
    const begin = () => { status.textContent = `The pot is ${parlor.wallet.format(room.totalWager, "GOLD")}`; };
    if (room.status === "STARTED") begin(); // with the last seat, which is ours
    else room.on("started", begin);
    const cancel = addButton("Give up", () => room.leave());
    const ended = await Promise.race([room.once("finished"), room.once("cancelled")]);
    cancel.remove();
    const mine = "payouts" in ended && ended.payouts.find(({ userId }) => userId === parlor.user?.id);
    status.textContent = room.status === "CANCELLED" ? "No duel. Your stake is back."
      : mine && mine.payout > 0 ? `You won ${parlor.wallet.format(mine.amount, "GOLD")}` : "You lost";
  } catch (e) {
    if (!(e instanceof ParlorError)) throw e;
    const { required, available } = e.data;
    status.textContent = e.code === "insufficient_funds" ? `You need ${required} and have ${available}` : e.detail;
  } finally {
    play.disabled = false;
  }
});
