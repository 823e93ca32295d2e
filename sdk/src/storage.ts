/** Texts by name that outlive the page where the browser allows it. */
export interface KeyValue {
  get(key: string): Promise<string | null>;
  set(key: string, value: string): Promise<void>;
  remove(key: string): Promise<void>;
  /** The names that begin with `prefix`. */
  keys(prefix: string): Promise<string[]>;
  /** Whether what is set will survive the page. */
  persistent(): boolean;
}

interface Backend {
  get(key: string): any;
  set(key: string, value: string): any;
  remove(key: string): any;
  keys(): any;
}

function webStorage(s: Storage): Backend {
  return {
    get: (key) => s.getItem(key),
    set: (key, value) => s.setItem(key, value),
    remove: (key) => s.removeItem(key),
    keys: () => Array.from({ length: s.length }, (_, i) => s.key(i)),
  };
}

const settled = <T>(r: IDBRequest<T>) =>
  new Promise<T>((resolve, reject) => {
    r.onsuccess = () => resolve(r.result);
    r.onerror = (r as any).onblocked = () => reject(r.error);
  });

async function indexedDatabase(): Promise<Backend> {
  const name = "parlor";
  const opening = indexedDB.open(name);
  opening.onupgradeneeded = () => opening.result.createObjectStore(name);
  const db = await settled(opening);
  const run = (mode: IDBTransactionMode, f: (s: IDBObjectStore) => IDBRequest<any>) =>
    settled(f(db.transaction(name, mode).objectStore(name)));
  return {
    get: (key) => run("readonly", (s) => s.get(key)),
    set: (key, value) => run("readwrite", (s) => s.put(value, key)),
    remove: (key) => run("readwrite", (s) => s.delete(key)),
    keys: () => run("readonly", (s) => s.getAllKeys()),
  };
}

/**
 * Opens the first storage that works: `custom` or localStorage, then IndexedDB, then memory. Each
 * access is tried, because a browser may forbid it at any time: in a cross-site frame reading
 * `localStorage` throws, and a quota may be reached. What cannot be stored is kept in memory.
 */
export async function openStorage(custom: Storage | false | undefined): Promise<KeyValue> {
  const kept = new Map<string, string>();
  let backend: Backend | undefined;
  const candidates = custom ? [() => webStorage(custom)]
    : custom === false ? []
    : [() => webStorage(localStorage), indexedDatabase];
  for (const open of candidates) {
    try {
      const candidate = await open();
      await candidate.set("parlor:probe", "1");
      await candidate.remove("parlor:probe");
      backend = candidate;
      break;
    } catch {} // the next one may work
  }
  async function attempt<T>(f: (b: Backend) => T) {
    try {
      return backend && (await f(backend));
    } catch {} // as if it held nothing
  }
  return {
    get: async (key) => kept.get(key) ?? (await attempt((b) => b.get(key))) ?? null,
    async set(key, value) {
      kept.set(key, value);
      await attempt(async (b) => {
        await b.set(key, value);
        if (kept.get(key) === value) kept.delete(key);
      });
    },
    async remove(key) {
      kept.delete(key);
      await attempt((b) => b.remove(key));
    },
    keys: async (prefix) =>
      [...new Set<string>([...kept.keys(), ...((await attempt((b) => b.keys())) || [])])]
        .filter((key) => key.startsWith(prefix)),
    persistent: () => !!backend && !kept.size,
  };
}
