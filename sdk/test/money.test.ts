import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FakeService, MemoryStorage } from "./fake_service.js";
import { closeTabs, openTab, run, settle, useFakeClock } from "./tab.js";

useFakeClock();

const buys = (service: FakeService) => service.calls.filter((call) => call.path.startsWith("user-assets/add"));
const unknown = { status: 503, body: { code: "outcome_unknown", status: 503, detail: "", retryable: true } };
const page = { status: 502, body: "<html>" };

describe("purchases", () => {
  it("happen once for each call, whatever is lost, also over reloads", async () => {
    const fate = fc.constantFrom("fine", "fine", "request", "reply", "unknown", "page", "refused" as const);
    const purchases = fc.array(fc.array(fate, { maxLength: 6 }), { minLength: 1, maxLength: 4 });
    await fc.assert(fc.asyncProperty(purchases, async (fates) => {
      const service = new FakeService();
      const storage = new MemoryStorage();
      let client = openTab(service, { storage });
      await settle(client.ready);
      let bought = 0;
      const open = new Set<string>();
      for (const list of fates) {
        let next = "fine";
        const take = (path: string) => { if (path.startsWith("user-assets")) next = list.shift() ?? "fine"; };
        service.fault = (_, path) => {
          take(path);
          return next === "request" || next === "reply" ? (next as any) : undefined;
        };
        service.failure = (_, path) => {
          if (!path.startsWith("user-assets")) return undefined;
          return next === "unknown" ? unknown : next === "page" ? page
            : next === "refused" ? { status: 409, body: { code: "sold_out", status: 409, detail: "" } } : undefined;
        };
        const before = buys(service).length;
        const outcome = await settle(client.store.buy(1, { expectedPrice: "2.5" }).then(() => "bought", (e) => e));
        const keys = new Set(buys(service).slice(before).map((call) => call.key));
        expect(keys.size).toBe(1); // the same in every attempt
        const [key] = keys;
        if (outcome === "bought") {
          bought++;
          expect(service.charges.get(key!)).toBe(1);
        } else if (outcome.code !== "sold_out") {
          expect((await settle(client.store.pending())).map((p) => p.key)).toContain(key);
          open.add(key!);
        }
      }
      service.fault = () => undefined;
      service.failure = () => undefined;
      client.close();
      client = openTab(service, { storage });
      await settle(client.ready);
      await run(5000);
      expect(await settle(client.store.pending())).toEqual([]);
      for (const key of open) expect(service.charges.get(key)).toBe(1);
      for (const times of service.charges.values()) expect(times).toBe(1);
      expect(service.charges.size).toBeGreaterThanOrEqual(bought);
      closeTabs();
    }), { numRuns: 60 });
  }, 120_000);

  it("store the key before the first send", async () => {
    const service = new FakeService();
    const storage = new MemoryStorage();
    const client = openTab(service, { storage });
    await settle(client.ready);
    let stored: any;
    service.fault = (_, path) => {
      if (path.startsWith("user-assets")) stored ??= [...storage.map].find(([name]) => name.includes(":buy:"))?.[1];
      return undefined;
    };
    await settle(client.store.buy(7, { quantity: 2, expectedPrice: 2.5 }));
    const { key } = buys(service)[0];
    expect(JSON.parse(stored)).toMatchObject({ key, assetId: 7, quantity: 2, expectedPrice: 2.5 });
    expect(buys(service)[0].body).toEqual({ quantity: 2, expectedPrice: 2.5 });
    expect(await settle(client.store.pending())).toEqual([]);
  });

  it("tell what the service said when it refused", async () => {
    const service = new FakeService();
    service.buyRefusal = { tokenId: "GOLD", available: 1.5, required: 2.5 };
    const client = openTab(service);
    await settle(client.ready);
    await expect(settle(client.store.buy(1))).rejects.toMatchObject({
      code: "insufficient_funds", status: 402, retryable: false, requestId: "r",
      docs: "https://api.example/docs/errors/insufficient_funds",
      data: { tokenId: "GOLD", available: 1.5, required: 2.5 },
    });
    expect(await settle(client.store.pending())).toEqual([]);
  });

  it("that are too old are not sent again: their key may be forgotten", async () => {
    const service = new FakeService();
    const storage = new MemoryStorage();
    const client = openTab(service, { storage });
    await settle(client.ready);
    service.fault = (_, path) => (path.startsWith("user-assets") ? "reply" : undefined);
    await expect(settle(client.store.buy(1))).rejects.toMatchObject({ code: "offline" });
    client.close();
    await run(24 * 3600_000);
    const before = buys(service).length;
    service.fault = () => undefined;
    const errors: any[] = [];
    const later = openTab(service, { storage });
    later.on("error", (e) => errors.push(e));
    await settle(later.ready);
    await run(5000);
    expect(buys(service).length).toBe(before);
    expect(errors).toMatchObject([{ code: "outcome_unknown", data: { assetId: 1 } }]);
    expect(await settle(later.store.pending())).toEqual([]);
  });

  it("of another player are left alone", async () => {
    const service = new FakeService();
    const storage = new MemoryStorage();
    const [ann, bob] = [service.newUser("Ann"), service.newUser("Bob")];
    const first = openTab(service, { storage, getToken: async () => service.tokenFor(ann) });
    await settle(first.ready);
    service.fault = (_, path) => (path.startsWith("user-assets") ? "request" : undefined);
    await expect(settle(first.store.buy(1))).rejects.toMatchObject({ code: "offline" });
    first.close();
    const before = buys(service).length;
    const second = openTab(service, { storage, getToken: async () => service.tokenFor(bob) });
    await settle(second.ready);
    await run(5000);
    expect(await settle(second.store.pending())).toEqual([]);
    expect(buys(service).length).toBe(before);
  });
});

describe("amounts", () => {
  it("are formatted without floats", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    expect(() => client.wallet.format("1", "GOLD")).toThrow("token_not_found");
    await settle(client.wallet.balances());
    for (const [amount, text] of [
      [2.5, "2.50 Gold"], ["250", "2.50 Gold"], ["5", "0.05 Gold"], ["-5", "-0.05 Gold"], ["2.5", "2.5 Gold"],
      ["9007199254740991", "90071992547409.91 Gold"], [0, "0.00 Gold"],
    ] as const) expect(client.wallet.format(amount, "GOLD")).toBe(text);
    await expect(settle(client.wallet.balance("GEM"))).rejects.toMatchObject({ code: "token_not_found" });
  });
});
