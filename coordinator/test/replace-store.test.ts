import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type DirectoryMoves, diskMoves } from "../src/replace-store/move-directories.ts";
import { type ReplaceStoreOptions, replaceStore } from "../src/replace-store/replace-store.ts";
import type { ServiceUnit } from "../src/replace-store/service-unit.ts";
import { type LevelStore, openLevelStore } from "../src/store/index.ts";
import { systemClock } from "../src/time/clock.ts";

const LIMIT = { timeout: 120_000 };

test(
  "replaces the store of a running coordinator by a backup, and keeps the former store",
  LIMIT,
  async (t) => {
    const host = await aHost(t);
    const { replaced, started, epoch } = await host.replace();
    assert.ok(started);
    assert.deepEqual(host.done, ["ask", "stop", "start"]);
    assert.match(
      host.questions[0] ?? "",
      /at revision \d+, and the present store is at revision 7\. The coordinator is stopped/,
    );
    assert.deepEqual(await host.running().values(), ["backed up"]);
    assert.equal(host.running().epoch, epoch);
    await host.unit.stop();
    assert.deepEqual(await valuesIn(replaced ?? ""), ["backed up", "later"]);
  },
);

test("begins a later epoch when the same backup is restored again", LIMIT, async (t) => {
  const host = await aHost(t);
  const first = await host.replace();
  const second = await host.replace();
  assert.equal(second.epoch, first.epoch + 1);
});

test(
  "puts the former store back if the coordinator does not become ready with the restored one",
  LIMIT,
  async (t) => {
    const host = await aHost(t);
    host.failingStarts = 1;
    await assert.rejects(host.replace(), {
      code: "UNAVAILABLE",
      message: /did not become ready with the restored store: no port.*runs with the former store again/,
    });
    assert.deepEqual(host.done, ["ask", "stop", "start", "stop", "start"]);
    assert.deepEqual(await host.running().values(), ["backed up", "later"]);
    const kept = host.names().filter((name) => name.startsWith("store."));
    assert.match(kept.join(), /^store\.failed-\d{8}T\d{9}Z$/);
  },
);

test(
  "puts the former store back even if the coordinator does not become ready with it either",
  LIMIT,
  async (t) => {
    const host = await aHost(t);
    host.failingStarts = 2;
    await assert.rejects(host.replace(), {
      message: /The former store is in its place again.*not become ready with it either: no port; .*kept in/,
    });
    await host.unit.start();
    assert.deepEqual(await host.running().values(), ["backed up", "later"]);
  },
);

test("stops nothing for a damaged backup, or without the operator's consent", LIMIT, async (t) => {
  const host = await aHost(t);
  const damaged = join(host.dir, "damaged");
  writeFileSync(damaged, "FORAGE STORE BACKUP 1\n");
  await assert.rejects(host.replace({ file: damaged }), { code: "CORRUPT" });
  await assert.rejects(host.replace({ ask: async () => false }), { code: "ABORTED" });
  assert.deepEqual(host.done, []);
  assert.deepEqual(await host.running().values(), ["backed up", "later"]);
});

test(
  "refuses the backup of another cluster, and keeps the coordinator running with its own store",
  LIMIT,
  async (t) => {
    const host = await aHost(t);
    const other = await aHost(t);
    await assert.rejects(host.replace({ file: other.backup }), { message: /is of another cluster/ });
    assert.deepEqual(host.done, ["ask", "stop", "start"]);
    assert.deepEqual(await host.running().values(), ["backed up", "later"]);
  },
);

test("does not stop a unit that runs with another store", LIMIT, async (t) => {
  const [host, other] = [await aHost(t), await aHost(t)];
  await host.unit.stop();
  host.done.length = 0;
  await assert.rejects(host.replace({ unit: other.unit }), { message: /does not use the store in .*--unit/ });
  assert.deepEqual([host.done, other.done], [[], []]);
});

test("replaces the store of a coordinator without a unit only while it is stopped", LIMIT, async (t) => {
  const host = await aHost(t);
  await assert.rejects(host.replace({ unit: undefined }), {
    code: "LOCKED",
    message: /stop the coordinator/,
  });
  await host.unit.stop();
  const { started } = await host.replace({ unit: undefined });
  assert.equal(started, false);
  await host.unit.start();
  assert.deepEqual(await host.running().values(), ["backed up"]);
});

test("replaces and keeps a store that can't be opened", LIMIT, async (t) => {
  const host = await aHost(t);
  await host.unit.stop();
  rmSync(join(host.dataDir, "store", "HEAD"));
  host.failing = true;
  await host.replace();
  assert.deepEqual(await host.running().values(), ["backed up"]);
  assert.match(host.lines.join("\n"), /the present store can't be read: .*--epoch/);
});

test("repeats a replacement that was interrupted between its renames, in a later epoch", LIMIT, async (t) => {
  const host = await aHost(t);
  const first = await host.replace();
  await host.unit.stop();
  rmSync(first.replaced ?? "", { recursive: true });
  renameSync(join(host.dataDir, "store"), join(host.dataDir, "store.replaced-20300101T000000000Z"));
  const second = await host.replace();
  assert.equal(second.epoch, first.epoch + 1);
  assert.match(second.replaced ?? "", /store\.replaced-20300101T000000000Z$/);
  await host.unit.start();
  assert.deepEqual(await host.running().values(), ["backed up"]);
});

test("loses neither store when a replacement is interrupted at any change of the disk", LIMIT, async (t) => {
  let changes = Number.POSITIVE_INFINITY;
  for (let at = 0; at < changes; at++) {
    const host = await aHost(t);
    await host.unit.stop();
    const disk = failingFrom(at);
    await host.replace({ unit: undefined, moves: disk.moves }).then(
      () => (changes = at),
      (error: Error) => assert.match(error.message, /the power is lost/),
    );
    const { replaced } = changes === at ? { replaced: undefined } : await host.replace({ unit: undefined });
    await host.unit.start();
    assert.deepEqual(await host.running().values(), ["backed up"], `at change ${at}`);
    const kept = host.names().filter((name) => name.startsWith("store.replaced-"));
    const values = await Promise.all(kept.map((name) => valuesIn(join(host.dataDir, name))));
    assert.ok(
      values.some((of) => of.includes("later")),
      `at change ${at}: ${kept} ${replaced}`,
    );
  }
  assert.equal(changes, 4, "two renames, each with a sync of the directory");
});

/** A disk that accepts no change after the given one, as after a loss of power. */
function failingFrom(at: number): { readonly moves: DirectoryMoves } {
  let changes = 0;
  const change = async (run: () => Promise<void>): Promise<void> => {
    if (changes++ >= at) throw new Error("the power is lost");
    await run();
  };
  return {
    moves: {
      rename: (from, to) => change(() => diskMoves.rename(from, to)),
      sync: (directory) => change(() => diskMoves.sync(directory)),
    },
  };
}

/** A host on which an open store stands for the coordinator. */
async function aHost(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-replace-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const dataDir = join(dir, "data");
  const storeDir = join(dataDir, "store");
  const backup = join(dir, "backup");
  let store: LevelStore | undefined = await openLevelStore({
    dir: storeDir,
    clock: systemClock,
    create: "allow",
  });
  await put(store, "backed up");
  await store.backup(backup);
  await put(store, "later");
  t.after(() => store?.close());
  const host = {
    ...{ dir, dataDir, backup, failingStarts: 0, failing: false },
    done: [] as string[],
    questions: [] as string[],
    lines: [] as string[],
    names: () => readdirSync(dataDir).sort(),
    running: () => {
      const running = store;
      assert.ok(running);
      return { epoch: running.epoch, values: () => valuesOf(running) };
    },
  };
  const unit: ServiceUnit = {
    name: "coordinator.service",
    state: async () => (host.failing ? "starting" : store === undefined ? "stopped" : "running"),
    stop: async () => {
      host.done.push("stop");
      host.failing = false;
      await store?.close();
      store = undefined;
    },
    start: async () => {
      host.done.push("start");
      if (host.failingStarts-- > 0) throw new Error("no port");
      store = await openLevelStore({ dir: storeDir, clock: systemClock, create: "refuse" });
    },
  };
  const replace = (given: Partial<ReplaceStoreOptions> = {}) =>
    replaceStore({
      ...{ place: { dataDir, store: {} }, file: backup, unit, clock: systemClock },
      servedRevision: async () => 7,
      ask: async (question) => {
        host.done.push("ask");
        host.questions.push(question);
        return true;
      },
      report: (line) => void host.lines.push(line),
      ...given,
    });
  return Object.assign(host, { unit, replace });
}

async function put(store: LevelStore, value: string): Promise<void> {
  await store.txn([], [{ type: "put", key: `values/${value.replace(" ", "-")}`, value: Buffer.from(value) }]);
}

async function valuesOf(store: LevelStore): Promise<string[]> {
  const { records } = await store.range("values/");
  return records.map(({ value }) => Buffer.from(value).toString());
}

/** Returns the values of a closed store. */
async function valuesIn(dir: string): Promise<string[]> {
  const store = await openLevelStore({ dir, clock: systemClock, create: "refuse" });
  try {
    return await valuesOf(store);
  } finally {
    await store.close();
  }
}
