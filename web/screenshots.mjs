// Takes the pictures of the README: two players in a race, and the drawer. PARLOR_BIN names the binary.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const root = join(import.meta.dirname, "..");
const images = join(root, "docs/images");
const child = spawn(
  process.env.PARLOR_BIN ?? join(root, "bin/parlor"), ["dev", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] },
);
let printed = "";
child.stdout.on("data", (chunk) => { printed += chunk; });
while (!printed.includes("# Events")) await new Promise((resolve) => child.stdout.once("data", resolve));

const browser = await chromium.launch({
  executablePath: [process.env.PARLOR_CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => path && existsSync(path)),
  args: ["--no-sandbox", "--disable-gpu"],
});
try {
  mkdirSync(images, { recursive: true });
  const context = await browser.newContext({ viewport: { width: 760, height: 640 }, colorScheme: "light" });
  const open = async () => {
    const page = await context.newPage();
    await page.goto(`${printed.match(/http:\/\/[\w.:]+/)[0]}/play`);
    return page;
  };
  const act = (page, name) => page.click(`[data-act=${name}]:enabled`);
  const [host, guest] = [await open(), await open()];
  await act(host, "create");
  await act(guest, "join");
  await act(host, "start");
  for (let n = 0; n < 3; n++) for (const page of [host, guest]) await act(page, "move");
  await act(host, "move");
  await host.waitForSelector("[data-act=move]:enabled");
  await host.evaluate(() => scrollTo(0, 0));
  await host.screenshot({ path: join(images, "play.png") });
  await host.setViewportSize({ width: 1280, height: 800 });
  await host.emulateMedia({ colorScheme: "dark" });
  await act(host, "drawer");
  await host.waitForSelector("parlor-debug");
  await host.waitForTimeout(500); // the pieces are on their way
  await host.evaluate(() => scrollTo(0, 0));
  await host.screenshot({ path: join(images, "under-the-hood.png"), clip: { x: 700, y: 56, width: 580, height: 740 } });
  for (const name of ["play.png", "under-the-hood.png"]) console.log(name, statSync(join(images, name)).size, "bytes");
} finally {
  await browser.close();
  child.kill("SIGTERM");
}
