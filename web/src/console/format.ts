// How values are shown.

// The style "long" of a time names the zone.
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "long" });
const tick = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const count = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

export const formatTime = (at: string): string => dateTime.format(new Date(at));
export const formatClock = (at: string): string => clock.format(new Date(at));
/** Returns a time for the axis of a plot, where no zone has room. */
export const formatTick = (ms: number): string => tick.format(ms);
/** The zone of this browser, which forms read times in. */
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
export const formatCount = (n: number): string => count.format(n);

/** Returns an exact amount of minor units: "-12.5" for "-1250" with 2 decimals. */
export function formatUnits(units: string, decimals: number): string {
  const negative = units.startsWith("-");
  const digits = (negative ? units.slice(1) : units).padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals).replace(/\B(?=(\d{3})+$)/g, " ");
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return (negative ? "−" : "") + whole + (fraction ? "." + fraction : "");
}

/** Returns an amount of minor units for a picture. The exact amounts are in the ledger. */
export const toNumber = (units: string, decimals: number): number => Number(units) / 10 ** decimals;

export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let i = 0;
  for (; bytes >= 1024 && i < units.length - 1; i++) bytes /= 1024;
  return `${count.format(bytes)} ${units[i]}`;
}

/** Returns how long ago something was, in one unit. */
export function formatAge(at: string, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(at)) / 1000));
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export const shortID = (id: string): string => id.slice(0, 8) + "…" + id.slice(-4);
