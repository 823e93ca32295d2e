// Hides what signs somebody in, before anything is recorded.

const secretName = /^(access|refresh|external|id)?token$|secret|ticket|password|authorization|(api|server|admin)key$/i;
const jwt = /^[\w-]{8,}\.[\w-]{8,}\.[\w-]*$/;

const isSecret = (name: string, value: unknown) =>
  typeof value === "string" && (secretName.test(name) || jwt.test(value));

/** Returns a copy of a JSON value with "…" for each secret. Calls `visit` with every object in it. */
export function hideSecrets(value: unknown, visit: (object: any) => void = () => {}): unknown {
  if (Array.isArray(value)) return value.map((member) => hideSecrets(member, visit));
  if (!value || typeof value !== "object") return isSecret("", value) ? "…" : value;
  visit(value);
  return Object.fromEntries(Object.entries(value).map(([name, member]) =>
    [name, isSecret(name, member) ? "…" : hideSecrets(member, visit)]));
}

/** Does the same for the query of an address. */
export const hideSecretsInQuery = (address: string) =>
  address.replace(/([?&])([^=&#]+)=([^&#]*)/g, (all, mark, name, value) =>
    isSecret(name, value) ? `${mark}${name}=…` : all);
