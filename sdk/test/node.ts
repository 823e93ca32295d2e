// Starts a real node for tests: PARLOR_BIN, or one built from this repository.
import { execFileSync, spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface RealNode {
  url: string;
  adminKey: string;
  serverKey: string;
  tokens: { ada: string; bob: string; cleo: string };
  /** Calls the node as an operator or a game server. */
  call(key: string, method: string, path: string, body?: object): Promise<any>;
  stop(): Promise<void>;
}

/** Returns PARLOR_BIN, or builds the program in a folder. */
export function findProgram(folder: string): string {
  if (process.env.PARLOR_BIN) return process.env.PARLOR_BIN;
  const program = join(folder, "parlor");
  execFileSync("go", ["build", "-trimpath", "-o", program, "./cmd/parlor"], { cwd: root, stdio: "inherit" });
  return program;
}

export async function startNode(env: Record<string, string> = {}): Promise<RealNode> {
  const folder = mkdtempSync(join(tmpdir(), "parlor-sdk-"));
  const binary = findProgram(folder);
  const args = ["dev", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0"];
  const stdio: StdioOptions = ["ignore", "pipe", "ignore"];
  const child: ChildProcess = spawn(binary, args, { env: { ...process.env, ...env }, stdio });
  const printed = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout!.on("data", (chunk) => {
      text += chunk;
      if (text.includes("/api/v1/admin/audit")) resolve(text);
    });
    child.on("exit", (code) => reject(new Error(`the node ended with ${code}: ${text}`)));
  });
  const value = (name: string) => printed.match(new RegExp(`\\b${name}=(\\S+)`))![1];
  const url = value("URL");
  return {
    url, adminKey: value("ADMIN_KEY"), serverKey: value("SERVER_KEY"),
    tokens: { ada: value("ADA_TOKEN"), bob: value("BOB_TOKEN"), cleo: value("CLEO_TOKEN") },
    async call(key, method, path, body) {
      const response = await fetch(`${url}/api/v1/${path}`, {
        method, body: body && JSON.stringify(body),
        headers: {
          Authorization: `Bearer ${key}`, "Content-Type": "application/json",
          ...(method === "POST" ? { "Idempotency-Key": crypto.randomUUID() } : {}),
        },
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
      return text && JSON.parse(text);
    },
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
