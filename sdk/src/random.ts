/** Returns `bytes` random bytes as hexadecimal digits. */
export const randomHex = (bytes: number): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (b) => (b + 256).toString(16).slice(1)).join("");

/**
 * Returns how long to wait before attempt `n` (from 0), in ms: full jitter between 250 ms and a cap
 * that doubles up to 15 s, so that the clients of a node that stopped do not come back together.
 */
export const jitter = (n: number): number => 250 + Math.random() * (Math.min(15_000, 500 * 2 ** n) - 250);

export const sleep = (ms: number) => new Promise<void>((resolve) => { setTimeout(resolve, ms); });

/** Returns a promise behind a function, and the functions that settle it. */
export function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (e: unknown) => void;
  const promise = new Promise<T>((...both) => { [resolve, reject] = both; });
  return { whenDone: () => promise, resolve, reject };
}
