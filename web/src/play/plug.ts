// The network of this page, which records its calls for the devtools and can be cut like a cable.
import { watchNetwork } from "../../../sdk/src/devtools/network";

export const network = watchNetwork({});

/** Cuts every connection, and lets no request out for a while. */
export function pull(ms: number) {
  if (network.isCut) return;
  network.cut();
  setTimeout(network.resume, ms);
}
