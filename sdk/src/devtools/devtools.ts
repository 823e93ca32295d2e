// The devtools: a script that the core loads for `debug: true`, before it connects.
import type { Options, Parlor } from "../types.js";
import { watchNetwork, type Network } from "./network.js";
import { createPanel, type Additions } from "./panel.js";
import { writeScript } from "./script.js";
import type { Debug } from "./types.js";

/** How a page that starts the devtools itself wants them. */
export interface Start extends Additions {
  /** The network of the client, if the page watches it already. */
  network?: Network;
  /** Where the panel is shown. By default it floats above the page. */
  place?: Element;
}

/** Gives a client its devtools, `parlor.debug`, and shows their panel where there is a page. */
export function startDevtools(parlor: Parlor, options: Options, start: Start = {}): Debug {
  const network = start.network || watchNetwork(options);
  const { calls, events, cut, resume, disconnect } = network;
  const writeTest = () => writeScript({ base: network.base, gameId: options.gameId, user: parlor.user, calls, events });
  const panel = globalThis.document && createPanel(parlor, network, writeTest, start);
  const debug: Debug = {
    calls, events, cut, resume, disconnect, writeTest,
    get latencyMs() { return network.latencyMs; },
    set latencyMs(ms) { network.latencyMs = ms; },
    get loss() { return network.loss; },
    set loss(part) { network.loss = part; },
    get isCut() { return network.isCut; },
    mount: (element) => panel?.mount(element),
  };
  (parlor as { debug?: Debug }).debug = debug;
  if (start.place) panel?.mount(start.place);
  else if (globalThis.document?.body) panel.float();
  else globalThis.document?.addEventListener("DOMContentLoaded", panel.float);
  return debug;
}

(globalThis as any).parlorDebug = startDevtools;
