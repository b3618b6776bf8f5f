import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { testStateFiles } from "../../test/state-files-contract.ts";
import { hostFiles } from "../journal/journal-files.ts";
import { StateFile, type StateFiles } from "./state-file.ts";

const DIR = "/state";
const NAME = "words.bin";

test("coalesces many changes into one write of the newest state", async () => {
  const { file, state, clock, disk } = aFile();
  for (const word of ["a", "b", "c"]) {
    state.word = word;
    file.changed();
  }
  clock.advance(1_999);
  assert.deepEqual(disk.writes, []);
  clock.advance(1);
  await file.close();
  assert.deepEqual(disk.writes, ["c"]);
});

test("closing writes a pending change, and nothing without one", async () => {
  const { file, state, disk } = aFile();
  await file.close();
  assert.deepEqual(disk.writes, []);
  state.word = "last";
  file.changed();
  await file.close();
  assert.deepEqual(disk.writes, ["last"]);
});

test("reports a failed write, and writes the next change", async () => {
  const { file, state, clock, disk, errors } = aFile();
  disk.isFull = true;
  file.changed();
  clock.advance(2_000);
  await file.close();
  assert.equal(errors.length, 1);
  disk.isFull = false;
  state.word = "again";
  file.changed();
  clock.advance(2_000);
  await file.close();
  assert.deepEqual([errors.length, disk.writes], [1, ["again"]]);
});

test("loads what was written, and distinguishes a missing file from an unreadable one", async () => {
  const { file, state, disk } = aFile();
  const damaged: string[] = [];
  const load = () =>
    StateFile.load({ dir: DIR, name: NAME, files: disk }, decode, (path) => damaged.push(path));
  assert.deepEqual(await load(), { loaded: "missing" });
  state.word = "kept";
  file.changed();
  await file.close();
  assert.deepEqual(await load(), { loaded: "sound", state: "kept" });
  disk.bytes = Buffer.alloc(0);
  assert.deepEqual(await load(), { loaded: "damaged" });
  assert.deepEqual(damaged, [file.path]);
});

testStateFiles("fake", () => ({ files: new FakeFiles(), dir: DIR }));
testStateFiles("host", (t) => {
  const parent = mkdtempSync(join(tmpdir(), "forage-state-"));
  t.after(() => rmSync(parent, { recursive: true }));
  return { files: hostFiles, dir: join(parent, "state") };
});

function aFile() {
  const clock = new VirtualClock();
  const disk = new FakeFiles();
  const state = { word: "" };
  const errors: unknown[] = [];
  const file = new StateFile({
    ...{ dir: DIR, name: NAME, writeAfterMs: 2_000, clock, files: disk },
    encode: () => Buffer.from(state.word),
    onError: (error) => errors.push(error),
  });
  return { file, state, clock, disk, errors };
}

function decode(bytes: Buffer): string {
  if (bytes.length === 0) throw new Error("it is empty");
  return bytes.toString();
}

class FakeFiles implements StateFiles {
  readonly writes: string[] = [];
  bytes: Buffer | undefined;
  isFull = false;

  async makeDirectory(): Promise<void> {}

  async read(): Promise<Buffer> {
    if (this.bytes === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
    return this.bytes;
  }

  async write(...[, files]: Parameters<StateFiles["write"]>): Promise<void> {
    if (this.isFull) throw new Error("no space left on device");
    this.bytes = Buffer.from(files[0]?.bytes ?? []);
    this.writes.push(this.bytes.toString());
  }
}
