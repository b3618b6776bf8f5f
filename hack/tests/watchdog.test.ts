import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const WATCHDOG = pathToFileURL(join(import.meta.dirname, "watchdog.ts")).href;

test("a file that leaves a server open is ended and fails with a list of open resources", async (t) => {
  const { code, output } = await runFile(t, "createServer().listen(0);");
  assert.equal(code, 1, output);
  assert.match(output, /still open 0.1 s after the last test.*TCPServerWrap/);
});

test("the timers that a file leaves open are listed with their delays and functions", async (t) => {
  const body = `
    setTimeout(function again() {}, 61_000);
    setInterval(() => {}, 5_000);
    setInterval(function background() {}, 7_000).unref();
    clearTimeout(setTimeout(function cancelled() {}, 62_000));
  `;
  const { code, output } = await runFile(t, body);
  assert.equal(code, 1, output);
  const [, listed = ""] = /^timers: (.*)$/m.exec(output) ?? [];
  assert.deepEqual(listed.split(", ").sort(), ["5000 ms of a function without a name", "61000 ms again"]);
});

test("a file that closes everything ends by itself", async (t) => {
  const { code, output } = await runFile(t, "");
  assert.equal(code, 0, output);
  assert.doesNotMatch(output, /still open/);
});

async function runFile(t: { after(hook: () => Promise<void>): void }, body: string) {
  const dir = await mkdtemp(join(tmpdir(), "forage-watchdog-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, "it.test.mjs");
  await writeFile(
    file,
    `import { createServer } from "node:net";\nimport { test } from "node:test";\ntest("leaks", () => { ${body} });\n`,
  );
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise<{ code: number; output: string }>((resolve) => {
    execFile(
      process.execPath,
      ["--import", WATCHDOG, file],
      { env: { ...env, FORAGE_TEST_GRACE_MS: "100" }, timeout: 60_000 },
      (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code ?? -1) : 0, output: stdout + stderr }),
    );
  });
}
