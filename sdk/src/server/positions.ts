import type { Positions } from "./types.js";

/** An entry of a feed, until all before it are handled too. */
export interface Entry {
  feed: string;
  position: string;
  isHandled: boolean;
}

/** What was heard of each feed, and how far all of it is handled. */
export function createFeeds() {
  const heard: Positions = {};
  const handled: Positions = {};
  const open = new Map<string, Entry[]>(); // not counted as handled yet, in their order

  function add(feed: string, position: string, isHandled: boolean): Entry {
    const entry = { feed, position, isHandled };
    heard[feed] = position;
    let list = open.get(feed);
    if (!list) open.set(feed, list = []);
    list.push(entry);
    return entry;
  }

  /** Counts an entry as handled. Returns whether the positions to save have changed. */
  function finish(entry: Entry): boolean {
    entry.isHandled = true;
    const list = open.get(entry.feed)!;
    let n = 0;
    while (list[n]?.isHandled) handled[entry.feed] = list[n++].position;
    list.splice(0, n);
    return n > 0;
  }

  return {
    heard, handled, add, finish,
    /** Reports whether an event of a feed came before: numbers rise within the history that was heard. */
    isOld: (feed: string, position: string) => feed in heard && parseInt(position) <= parseInt(heard[feed]),
    restore(saved: Positions) {
      Object.assign(heard, saved);
      Object.assign(handled, saved);
    },
  };
}
