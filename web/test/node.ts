// Starts a real node and a real browser for tests.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser } from "playwright-core";

const repository = join(import.meta.dirname, "../..");

export interface Node {
  url: string;
  printed: string; // what `parlor dev` printed
  stop(): Promise<void>;
}

/** Returns a node in developer mode, built from the sources. PARLOR_BIN names a binary to use instead. */
export async function startNode(...flags: string[]): Promise<Node> {
  const folder = mkdtempSync(join(tmpdir(), "parlor-web-"));
  const binary = process.env.PARLOR_BIN ?? join(folder, "parlor");
  if (!process.env.PARLOR_BIN) {
    execFileSync("go", ["build", "-trimpath", "-o", binary, "./cmd/parlor"], { cwd: repository, stdio: "inherit" });
  }
  const child = spawn(
    binary, ["dev", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", ...flags],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, HOME: folder } },
  );
  const stop = async () => {
    await end(child);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const printed = await readUntil(child, /\/admin\/audit/);
    return { url: printed.match(/http:\/\/[\w.:[\]]+/)![0], printed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGTERM");
  });
}

/** Returns the output of a process once it matches. */
function readUntil(child: ChildProcess, wanted: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = "";
    let complaint = "";
    child.stdout!.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (wanted.test(output)) resolve(output);
    });
    child.stderr!.on("data", (chunk: Buffer) => { complaint += chunk.toString(); });
    child.once("exit", (code) => reject(new Error(`parlor dev ended with ${code}: ${complaint}`)));
  });
}

/** Returns Debian's Chromium, or the one that PARLOR_CHROMIUM names. */
export function startBrowser(): Promise<Browser> {
  const found = [process.env.PARLOR_CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
  if (!found) throw new Error("Chromium is missing: apt-get install chromium, or set PARLOR_CHROMIUM");
  return chromium.launch({
    executablePath: found,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
  });
}
