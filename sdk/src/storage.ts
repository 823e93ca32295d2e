/** JSON values by name that outlive the page where the browser allows it. */
export interface KeyValue {
  /** Resolves with undefined or null for what was not set. */
  get(key: string): Promise<any>;
  set(key: string, value: unknown): Promise<void>;
  remove(key: string): Promise<void>;
  /** The names that begin with `prefix`. */
  keys(prefix: string): Promise<string[]>;
  /** Resolves with whether what is set will survive the page. */
  isPersistent(): Promise<boolean>;
}

/** A storage behind the names that IndexedDB has for its operations. */
type Backend = (operation: "get" | "put" | "delete" | "getAllKeys", ...values: string[]) => any;

const webStorage = (s: Storage): Backend => (operation, ...[value, key = value]) =>
  operation === "get" ? s.getItem(key)
    : operation === "put" ? s.setItem(key, value)
    : operation === "delete" ? s.removeItem(key)
    : Array.from(s, (_, i) => s.key(i));

const settled = (r: IDBRequest<any>) => new Promise<any>((resolve, reject) => {
  r.onsuccess = () => resolve(r.result);
  r.onerror = reject;
});

async function indexedDatabase(): Promise<Backend> {
  const opening = indexedDB.open("parlor");
  opening.onupgradeneeded = () => opening.result.createObjectStore("parlor");
  const db: IDBDatabase = await settled(opening);
  return (operation, ...values) =>
    settled((db.transaction("parlor", "readwrite").objectStore("parlor") as any)[operation](...values));
}

async function openBackend(custom: Storage | false | undefined): Promise<Backend | undefined> {
  for (const open of custom === false ? [] : [() => webStorage(custom || localStorage), indexedDatabase]) {
    try {
      const backend = await open();
      await backend("put", "1", "parlor:probe");
      await backend("delete", "parlor:probe");
      return backend;
    } catch {} // the next one may work
  }
}

/**
 * Opens the first storage that works: `custom` or localStorage, then IndexedDB, then memory. Each
 * access is tried, because a browser may forbid it at any time: in a cross-site frame reading
 * `localStorage` throws, and a quota may be reached. What cannot be stored is kept in memory.
 */
export function openStorage(custom: Storage | false | undefined): KeyValue {
  const kept = new Map<string, string>();
  const opening = openBackend(custom);
  const attempt = async (...call: Parameters<Backend>) => {
    try {
      return await (await opening)!(...call);
    } catch {
      return null; // as if it held nothing
    }
  };
  return {
    async get(key) {
      try {
        return JSON.parse(kept.get(key) ?? (await attempt("get", key)));
      } catch {} // written by somebody else
    },
    async set(key, value) {
      const text = JSON.stringify(value);
      kept.set(key, text);
      if ((await attempt("put", text, key)) !== null) kept.delete(key);
    },
    async remove(key) {
      kept.delete(key);
      await attempt("delete", key);
    },
    keys: async (prefix) => [...new Set<string>([...kept.keys(), ...((await attempt("getAllKeys")) || [])])]
      .filter((key) => key.startsWith(prefix)),
    isPersistent: async () => !!(await opening) && !kept.size,
  };
}
