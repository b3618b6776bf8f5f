/**
 * A test runs this program in its own mount namespace: `full-disk-start-scenario.ts DIR`. DIR is a
 * file system of 160 MiB. Fails with an uncaught assertion if the coordinator does not start on the
 * full disk.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundledProgram } from "../../hack/bundling/bundled-program.ts";
import { freePort } from "../../hack/lib/free-ports.ts";
import { until } from "./support/until.ts";

const COORDINATOR = await bundledProgram("coordinator");

const dir = process.argv[2] ?? "";
const dataDir = join(dir, "data");
const filler = join(dir, "filler");
const caFile = join(dataDir, "ca.crt");
const port = await freePort();

const first = start();
await until("the coordinator is ready", async () => (await readiness())?.ok === true);
await until("the ballast is there", () => existsSync(join(dataDir, "store", "ballast")));
await stop(first);
const ca = readFileSync(caFile, "utf8");
const { bfree, bsize } = statfsSync(dir);
writeFileSync(filler, Buffer.alloc(bfree * bsize));
assert.equal(statfsSync(dir).bfree, 0);

const second = start();
await until("it names the full disk", async () => /free/.test((await readiness())?.text ?? ""));
assert.equal(readFileSync(caFile, "utf8"), ca);
rmSync(filler);
await until("it is ready once there is room", async () => (await readiness())?.ok === true);
await until("the ballast is there again", () => existsSync(join(dataDir, "store", "ballast")));
await stop(second);

// A coordinator that can't write the copy of its certificate serves without it.
rmSync(caFile);
writeFileSync(filler, Buffer.alloc(statfsSync(dir).bfree * bsize));
const third = start();
await until("it serves", async () => (await readiness()) !== undefined);
rmSync(filler);
await until("it is ready once there is room", async () => (await readiness())?.ok === true);
await stop(third);

function start(): ChildProcess {
  const args = ["--data-dir", dataDir, "--grpc", "127.0.0.1:0", "--http", `127.0.0.1:${port}`];
  const child = spawn(process.execPath, [COORDINATOR, ...args], { stdio: ["ignore", "ignore", "inherit"] });
  child.once("exit", (code) => {
    if (code !== 0) throw new Error(`the coordinator ended with ${code}`);
  });
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  child.kill("SIGTERM");
  await once(child, "exit");
}

async function readiness(): Promise<{ readonly ok: boolean; readonly text: string } | undefined> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
    return { ok: answer.ok, text: await answer.text() };
  } catch {
    return undefined;
  }
}
