// Calls Parlor.jslib as a build of Unity does: its texts are UTF-8 in memory, the callback is a
// place in the table
// of functions, and the macro is expanded as Emscripten does. C# itself does not run here.
import { addButton, addText, readSource, roll } from "./screen.js";

const memory = new Uint8Array(1 << 20);
const allocated = new Map<number, number>(); // sizes by address
let nextAddress = 8;
const table: ((...args: number[]) => void)[] = [() => { throw new Error("null function"); }];
const faults: string[] = [];

const library: Record<string, any> = {};
const emscripten = {
  LibraryManager: { library }, mergeInto: Object.assign,
  lengthBytesUTF8: (text: string) => new TextEncoder().encode(text).length,
  UTF8ToString: (address: number) => new TextDecoder().decode(memory.subarray(address, memory.indexOf(0, address))),
  stringToUTF8(text: string, address: number, size: number) {
    const bytes = new TextEncoder().encode(text);
    if (allocated.get(address) !== size || bytes.length >= size) faults.push(`${size} bytes for ${text}`);
    memory.set(bytes, address);
    memory[address + bytes.length] = 0;
  },
  _malloc(size: number) {
    if (nextAddress + size > memory.length) nextAddress = 8; // what is there was freed, or the test fails by it
    const address = nextAddress;
    nextAddress += size;
    allocated.set(address, size);
    return address;
  },
  _free(address: number) {
    if (!allocated.delete(address)) faults.push(`${address} is freed twice`);
    memory.fill(0xff, address, address + 1); // nobody may read it afterwards
  },
  getWasmTableEntry: (index: number) => table[index],
};
const source = (await readSource("unity/Assets/Plugins/Parlor/Parlor.jslib"))
  .replace(/\{\{\{ makeDynCall\('viii', '(\w+)'\) \}\}\}/g, "((a1, a2, a3) => getWasmTableEntry($1)(a1, a2, a3))");
new Function(...Object.keys(emscripten), source)(...Object.values(emscripten));

/** Calls a function of the library as DllImport does: texts are freed when it returns. */
function invoke(name: string, ...args: (string | number)[]): any {
  const own: number[] = [];
  const result = library[name](...args.map((value) => {
    if (typeof value === "number") return value;
    const size = emscripten.lengthBytesUTF8(value) + 1;
    const address = emscripten._malloc(size);
    emscripten.stringToUTF8(value, address, size);
    own.push(address);
    return address;
  }));
  own.forEach(emscripten._free);
  return result;
}

function format(amount: string, tokenId: string): string {
  const address = invoke("ParlorFormat", amount, tokenId);
  const text = emscripten.UTF8ToString(address);
  emscripten._free(address); // as the marshaller does
  return text;
}

const calls = new Map<string, { resolve(value: any): void; reject(e: unknown): void }>();
const ask = (method: string, ...args: unknown[]) => new Promise<any>((resolve, reject) => {
  const id = String(calls.size + 1);
  calls.set(id, { resolve, reject });
  invoke("ParlorAsk", id, method, JSON.stringify(args));
});

// The steps of Duel.cs.
const money = addText();
const status = addText("Connecting");
let me = 0, mine = 0, theirs = 0;
let gold: any, room: any;

const showMoney = (amount: string) => { money.textContent = `You have ${format(amount, "GOLD")}`; };
const started = () => {
  status.textContent = `The pot is ${format(room.totalWagerAmount, "GOLD")}`;
  rollButton.hidden = false;
};
async function report() {
  if (!mine || !theirs) return;
  await ask("room.finish", room.roomId, room.participants.map(({ id }: { id: number }) =>
    ({ userId: id, place: (id === me ? mine >= theirs : theirs >= mine) ? 1 : 2 })));
}
async function heard(name: string, data: any) {
  if (name === "user") me = data.user.id;
  if (name === "balance") showMoney(data.amount);
  if (name === "error") throw new Error(data.detail);
  if (name !== "state" || data !== "online" || gold) return;
  gold = await ask("wallet.balance", "GOLD");
  showMoney(gold.amount);
  status.textContent = "Ready";
}
function roomHeard(roomId: string, name: string, data: any) {
  if (room && roomId !== room.roomId) return;
  if (name === "message") {
    theirs = data.payload.n;
    void report();
    return;
  }
  room = data.room;
  if (name === "started") started();
  if (name !== "finished") return;
  const { amount } = data.payouts.find(({ userId }: { userId: number }) => userId === me);
  status.textContent = amount === "0" ? "You lost" : `You won ${format(amount, "GOLD")}`;
  void ask("room.release", roomId);
}
addButton("Play for 2.50", async () => {
  const settings = { maxPlayers: 2, entryTokenId: gold.id, roomEntry: "2.5", autoStart: true, settlement: "consensus" };
  const joined = await ask("rooms.quick", settings);
  room ??= joined;
  if (room.status === "STARTED") started();
});
const rollButton = addButton("Roll", () => {
  mine = roll;
  void ask("room.send", room.roomId, "roll", { n: mine });
  void report();
});
rollButton.hidden = true;

table.push((...texts) => {
  const [target, name, json] = texts.map(emscripten.UTF8ToString) as [string, string, string];
  const data = JSON.parse(json);
  const call = calls.get(target);
  if (call) {
    if (name === "ok") call.resolve(data);
    else call.reject(new Error(`${data.code}: ${data.detail}`));
  } else if (target) roomHeard(target, name, data);
  else void heard(name, data);
});
invoke("ParlorOpen", '{"gameId":1}', table.length - 1);
Object.assign(window, {
  /** What was not freed, or wrongly. */
  leaks: () => [...faults, ...[...allocated].map(([address, size]) => `${size} bytes at ${address}`)],
  time: () => invoke("ParlorTime"),
  closeGame: () => invoke("ParlorClose"),
});
