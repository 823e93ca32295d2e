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

/** A storage behind the names that IndexedDB has for its operations. */
type Backend = (operation: "get" | "put" | "delete" | "getAllKeys", ...values: string[]) => any;

const webStorage = (s: Storage): Backend => (operation, ...[value, key = value]) =>
  operation === "get" ? s.getItem(key)
    : operation === "put" ? s.setItem(key, value)
    : operation === "delete" ? s.removeItem(key)
    : Array.from({ length: s.length }, (_, i) => s.key(i));

const settled = (r: IDBRequest<any>) => new Promise<any>((resolve, reject) => {
  r.onsuccess = () => resolve(r.result);
  r.onerror = (r as any).onblocked = reject;
});

async function indexedDatabase(): Promise<Backend> {
  const opening = indexedDB.open("parlor");
  opening.onupgradeneeded = () => opening.result.createObjectStore("parlor");
  const db: IDBDatabase = await settled(opening);
  return (operation, ...values) =>
    settled((db.transaction("parlor", "readwrite").objectStore("parlor") as any)[operation](...values));
}

/**
 * Opens the first storage that works: `custom` or localStorage, then IndexedDB, then memory. Each
 * access is tried, because a browser may forbid it at any time: in a cross-site frame reading
 * `localStorage` throws, and a quota may be reached. What cannot be stored is kept in memory.
 */
export async function openStorage(custom: Storage | false | undefined): Promise<KeyValue> {
  const kept = new Map<string, string>();
  let backend: Backend | undefined;
  for (const open of custom === false ? [] : [() => webStorage(custom || localStorage), indexedDatabase]) {
    try {
      const candidate = await open();
      await candidate("put", "1", "parlor:probe");
      await candidate("delete", "parlor:probe");
      backend = candidate;
      break;
    } catch {} // the next one may work
  }
  const attempt: Backend = async (...call) => {
    try {
      return backend && (await backend(...call));
    } catch {
      return null; // as if it held nothing
    }
  };
  return {
    get: async (key) => kept.get(key) ?? (await attempt("get", key)) ?? null,
    async set(key, value) {
      kept.set(key, value);
      if ((await attempt("put", value, key)) !== null && backend) kept.delete(key);
    },
    async remove(key) {
      kept.delete(key);
      await attempt("delete", key);
    },
    keys: async (prefix) => [...new Set<string>([...kept.keys(), ...((await attempt("getAllKeys")) || [])])]
      .filter((key) => key.startsWith(prefix)),
    persistent: () => !!backend && !kept.size,
  };
}
