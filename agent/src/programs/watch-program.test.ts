import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { CtrImages } from "../runtime/nerdctl/ctr-images.ts";
import { type ProgramEnd, type StartedProgram, startProgram } from "./start-program.ts";
import { watchProgram } from "./watch-program.ts";

const LIMIT = { timeout: 60_000 };
const env = { PATH: "/usr/bin:/bin" };

test("kills a program that makes no progress in time, but not one that does", LIMIT, async () => {
  const { signal } = new AbortController();
  const idle = watchProgram(startProgram("sleep", ["1000"], { env }), signal, 10_000);
  idle.arm(50);
  assert.equal((await idle.ended).signal, "SIGKILL");
  assert.deepEqual([idle.stalled, idle.over.aborted], [true, true]);
  const busy = watchProgram(startProgram("true", [], { env }), signal, 10_000);
  busy.arm(30_000);
  assert.equal((await busy.ended).exitCode, 0);
  assert.equal(busy.stalled, false);
});

test("an aborted program that is stuck in the kernel blocks no caller", LIMIT, async () => {
  for (const call of ["load", "read"] as const) {
    const stuck = aStuckProgram();
    const options = { address: "/none", namespace: "none", start: () => stuck.child, killPatienceMs: 20 };
    const images = new CtrImages(options);
    const gone = new AbortController();
    const ended =
      call === "load" ? images.load(endless(), gone.signal) : images.read("sha256:1", gone.signal).next();
    setImmediate(() => gone.abort());
    await assert.rejects(ended);
    assert.ok(stuck.kills() > 0);
  }
});

/** A program without input and output that doesn't end when it is killed. */
function aStuckProgram(): { readonly child: StartedProgram; readonly kills: () => number } {
  let kills = 0;
  const child: StartedProgram = {
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    ended: new Promise<ProgramEnd>(() => {}),
    kill: () => kills++,
  };
  return { child, kills: () => kills };
}

async function* endless(): AsyncGenerator<Buffer> {
  while (true) yield Buffer.alloc(64 * 1024);
}
