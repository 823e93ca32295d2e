/** The beginning of an address: its scheme, host and port. */
export const origin = /^https?:\/\/[^/]+/;

let scriptOrigin: string | undefined;

/** Sets the default of `baseUrl`: the origin that the SDK's own script came from, if it is no bundle. */
export function setScriptOrigin(address: string | undefined) {
  scriptOrigin = origin.exec(address!)?.[0];
}

export const defaultOrigin = () => scriptOrigin || globalThis.location?.origin;
