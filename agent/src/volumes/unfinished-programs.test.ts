import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { unfinishedPrograms, unfinishedProgramsEnd } from "./unfinished-programs.ts";

interface Process {
  readonly comm: string;
  readonly argv: readonly string[];
  readonly namespace?: string;
}

function procOf(t: TestContext, processes: Readonly<Record<string, Process>>): string {
  const procDir = mkdtempSync(join(tmpdir(), "forage-proc-"));
  t.after(() => rmSync(procDir, { recursive: true }));
  const all = { self: { comm: "node", argv: ["node"] }, ...processes };
  for (const [id, { comm, argv, namespace = "mnt:[1]" }] of Object.entries<Process>(all)) {
    mkdirSync(join(procDir, id, "ns"), { recursive: true });
    writeFileSync(join(procDir, id, "comm"), `${comm}\n`);
    writeFileSync(join(procDir, id, "cmdline"), argv.map((it) => `${it}\0`).join(""));
    symlinkSync(namespace, join(procDir, id, "ns", "mnt"));
  }
  return procDir;
}

test("programs that make devices below the directory are found, and no others", async (t) => {
  const image = "/data/volumes/disk/a/limited.img";
  const procDir = procOf(t, {
    10: { comm: "losetup", argv: ["losetup", "--find", "--", image] },
    11: { comm: "setpriv", argv: ["setpriv", "--pdeathsig=KILL", "--", "mkfs.ext4", image] },
    12: { comm: "losetup", argv: ["losetup", "--find", "--", "/data/volumes-of-others/a.img"] },
    13: { comm: "cat", argv: ["cat", image] },
    14: { comm: "losetup", argv: ["losetup", image], namespace: "mnt:[2]" },
    15: { comm: "mount", argv: [] },
  });
  mkdirSync(join(procDir, "16"));
  assert.deepEqual(await unfinishedPrograms("/data/volumes", procDir), ["10", "11"]);
});

test("the wait ends with the last program, or after 10 s", async (t) => {
  const program = { comm: "losetup", argv: ["losetup", "/data/volumes/x"] };
  const procDir = procOf(t, { 10: program, 11: program });
  const clock = new VirtualClock();
  const beganMs = clock.monotonicMs();
  let ended = false;
  const waiting = unfinishedProgramsEnd("/data/volumes", clock, procDir).then(() => {
    ended = true;
  });
  const pass = async (ms: number): Promise<void> => {
    while (clock.pending === 0 && !ended) await new Promise(setImmediate);
    clock.advance(ms);
  };
  rmSync(join(procDir, "10"), { recursive: true });
  await pass(50);
  await pass(50);
  assert.equal(ended, false);
  rmSync(join(procDir, "11"), { recursive: true });
  await pass(50);
  await waiting;
  assert.ok(clock.monotonicMs() - beganMs < 10_000);
  const stuck = unfinishedProgramsEnd("/data/volumes", clock, procOf(t, { 12: program }));
  ended = false;
  void stuck.then(() => {
    ended = true;
  });
  for (let passed = 0; passed < 10_050; passed += 50) await pass(50);
  await stuck;
});
