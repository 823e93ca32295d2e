// @parlor-games/react without a browser: its size, its formats, and what a server renders.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import * as React from "react";
import { renderToString } from "react-dom/server";
import { describe, expect, it, vi } from "vitest";
import { createHooks, type Hooks } from "../react/src/hooks.js";

const url = (name: string) => new URL(`../${name}`, import.meta.url);
const names = ["ParlorProvider", "useBalances", "useBoard", "useParlor", "useRoom"];

describe("the package of the hooks", () => {
  it("has at most 3 KB, compressed", () => {
    for (const name of ["react/dist/index.mjs", "react/dist/index.cjs", "dist/react.v1.js", "dist/react.v1.mjs"]) {
      expect(gzipSync(readFileSync(url(name), "utf8"), { level: 9 }).length).toBeLessThanOrEqual(3000);
    }
  });

  it("exports the component and the hooks", () => {
    // The package is loaded as one that is installed beside the SDK: its imports are those of its peers.
    const require = createRequire(import.meta.url);
    const module = { exports: {} as Hooks };
    const load = (name: string) => (name === "react" ? React : require(`../dist/${name.includes("boards") ? "boards.v1" : "v1"}.cjs`));
    new Function("require", "module", "exports", readFileSync(url("react/dist/index.cjs"), "utf8"))(load, module, module.exports);
    expect(Object.keys(module.exports).sort()).toEqual(names);
    const page = { Parlor: {} as { createHooks?: (react: typeof React) => Hooks } };
    runInNewContext(readFileSync(url("dist/react.v1.js"), "utf8"), page);
    expect(Object.keys(page.Parlor.createHooks!(React)).sort()).toEqual(names);
    const readme = readFileSync(url("react/README.md"), "utf8");
    for (const name of names) expect(readme).toContain(name);
  });
});

describe("on a server", () => {
  it("renders what a browser shows first, and makes no client", () => {
    const init = vi.fn();
    const { ParlorProvider, useParlor, useRoom, useBalances, useBoard } = createHooks(React, { init });
    const Page = () => {
      const { parlor, state, user, error } = useParlor();
      return JSON.stringify([parlor, state, user, error, useRoom("room"), useBalances(), useBoard("weekly")]);
    };
    const page = React.createElement(ParlorProvider, { options: { gameId: 1 } }, React.createElement(Page));
    const text = renderToString(page).replaceAll("&quot;", '"');
    const none = ["room", "balances", "board"].map((name) => ({ [name]: null, error: null }));
    expect(JSON.parse(text)).toEqual([null, "idle", null, null, ...none]);
    expect(init).not.toHaveBeenCalled();
  });

  it("names a provider that is missing", () => {
    const { useParlor } = createHooks(React, { init: vi.fn() });
    const Page = () => useParlor().state;
    expect(() => renderToString(React.createElement(Page))).toThrow("ParlorProvider");
  });
});
