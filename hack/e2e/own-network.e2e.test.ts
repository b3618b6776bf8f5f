import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { waitFor } from "../lib/wait-for.ts";

const PRELOAD = join(import.meta.dirname, "..", "tests", "enter-own-network.ts");
const LIMIT = { timeout: 180_000 };

test(
  "a test file has its own network with an address and a route, which is removed at its end",
  LIMIT,
  async () => {
    const print =
      "console.log(process.env.FORAGE_TEST_NETWORK, Object.keys(os.networkInterfaces()).sort().join())";
    const program = start(`const os = require("node:os"); ${print}; process.exitCode = 7;`);
    const [output, [exitCode]] = await Promise.all([text(program.stdout), once(program, "exit")]);
    const [name = "", interfaces] = output.trim().split(" ");
    assert.equal(exitCode, 7, "its exit code is the file's");
    assert.equal(interfaces, "host0,lo,nothing0");
    assert.equal(name, `fgt-${program.pid}`);
    assert.equal(existsSync(`/run/netns/${name}`), false);
  },
);

test(
  "a test file that is killed ends its process inside, too, and the next ones remove its network",
  LIMIT,
  async () => {
    const program = start("console.log(process.pid); setInterval(() => {}, 1000);");
    const [pid] = await once(program.stdout.setEncoding("utf8"), "data");
    const inside = `/proc/${Number(pid)}`;
    assert.equal(existsSync(inside), true);
    program.kill("SIGTERM");
    await once(program, "exit");
    await waitFor(() => !existsSync(inside), { what: "the process inside ends", limitMs: 90_000 });
    // Other test files that start at the same time may remove it as well.
    await once(start(""), "exit");
    const left = `/run/netns/fgt-${program.pid}`;
    await waitFor(() => !existsSync(left), { what: "the network is gone", limitMs: 90_000 });
  },
);

function start(script: string): ChildProcessByStdio<null, Readable, null> {
  const { FORAGE_TEST_NETWORK: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  return spawn(process.execPath, ["--import", PRELOAD, "--eval", script], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
}
