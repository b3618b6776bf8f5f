import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { systemClock } from "@forage/common/clock";
import { type Random, randomOf } from "@forage/common/random";
import { openLevelStore, type Store } from "../../src/store/index.ts";

const KILLS = 100;
/**
 * The numbers of writers of the stores that are killed concurrently: while one waits for the disk,
 * another starts.
 */
const LANES = [1, 16, 1, 16];
const WRITER = new URL("crash-writer.ts", import.meta.url).pathname;

/** The longest lifetime of a writer, enough for hundreds of batches. */
const LIFE_MS_MAX = 150;

/**
 * One in this many is killed at any moment after its start, and so also while it opens the store.
 */
const KILL_EARLY = 5;
const EARLY_MS_MAX = 300;

interface Acknowledged {
  readonly sequence: number;
  readonly revision: number;
}

/** The last write that each writer knows to be durable. */
type Ledger = Map<number, Acknowledged>;

test(`loses and tears no acknowledged write in ${KILLS} kills`, {
  timeout: 300_000,
}, async (t) => {
  const lanes = LANES.map((writers, i) => lane(writers, KILLS / LANES.length, randomOf(20260101 + i)));
  await Promise.allSettled(lanes);
  const results = await Promise.all(lanes);
  const total = (field: keyof LaneResult): number => results.reduce((sum, result) => sum + result[field], 0);
  t.diagnostic(
    `${total("kills")} kills, ${total("acknowledged")} acknowledged, ${total("unacknowledged")} durable without, revision ${total("revision")}`,
  );
  assert.equal(total("kills"), KILLS);
  // A run with hardly any writes would prove nothing.
  assert.ok(total("acknowledged") > 5 * KILLS, `only ${total("acknowledged")} writes were acknowledged`);
});

interface LaneResult {
  readonly kills: number;
  readonly acknowledged: number;
  /**
   * The number of writes that were stored although their writer was killed before their
   * acknowledgement.
   */
  readonly unacknowledged: number;
  readonly revision: number;
}

async function lane(writers: number, kills: number, random: Random): Promise<LaneResult> {
  const dir = mkdtempSync(join(tmpdir(), "forage-crash-"));
  const ledger: Ledger = new Map();
  let acknowledged = 0;
  let unacknowledged = 0;
  let revision = 0;
  try {
    for (let kill = 0; kill < kills; kill++) {
      acknowledged += await runAndKill(dir, writers, ledger, random);
      const store = await openLevelStore({ dir: join(dir, "store"), clock: systemClock, ballastBytes: 4096 });
      try {
        assert.ok(store.revision >= revision, `the revision went back from ${revision} to ${store.revision}`);
        revision = store.revision;
        unacknowledged += await check(store, writers, ledger);
      } finally {
        await store.close();
      }
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return { kills, acknowledged, unacknowledged, revision };
}

/** Lets the writers write for a random time. Returns the number of acknowledgements. */
async function runAndKill(dir: string, writers: number, ledger: Ledger, random: Random): Promise<number> {
  const child = spawn(process.execPath, [WRITER, join(dir, "store"), String(writers)], {
    stdio: ["ignore", "pipe", "pipe"],
    // There are a hundred starts, each of which is twice as fast with the compile cache of the
    // first one.
    env: { ...process.env, NODE_COMPILE_CACHE: join(dir, "compiled") },
  });
  const kill = (): boolean => child.kill("SIGKILL");
  const closed = once(child, "close");
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    complaint += chunk;
  });
  const early = random.below(KILL_EARLY) === 0;
  const lifeMs = random.below(early ? EARLY_MS_MAX : LIFE_MS_MAX);
  let timer = early ? setTimeout(kill, lifeMs) : undefined;
  let acknowledged = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === "ready") {
      timer ??= setTimeout(kill, lifeMs);
      continue;
    }
    const [writer = -1, sequence = 0, revision = 0] = line.split(" ").map(Number);
    ledger.set(writer, { sequence, revision });
    acknowledged++;
  }
  const [code, signal] = await closed;
  clearTimeout(timer);
  assert.equal(signal, "SIGKILL", `the writer ended by itself with ${code}: ${complaint}`);
  return acknowledged;
}

/**
 * Checks that the keys of every writer contain its last acknowledged write or the next one. Returns
 * the number of next ones.
 */
async function check(store: Store, writers: number, ledger: Ledger): Promise<number> {
  let ahead = 0;
  for (let writer = 0; writer < writers; writer++) {
    const [left, right] = await Promise.all([store.get(`w/${writer}/left`), store.get(`w/${writer}/right`)]);
    assert.equal(left?.modRevision, right?.modRevision, `writer ${writer}: half of a transaction is there`);
    assert.deepEqual(left?.value, right?.value, `writer ${writer}: the halves differ`);
    const sequence = left === undefined ? 0 : Number(Buffer.from(left.value).toString().trim());
    const acknowledged = ledger.get(writer) ?? { sequence: 0, revision: 0 };
    assert.ok(
      sequence >= acknowledged.sequence,
      `writer ${writer}: ${acknowledged.sequence} was acknowledged, ${sequence} is there`,
    );
    assert.ok(
      sequence <= acknowledged.sequence + 1,
      `writer ${writer}: ${sequence} came out of nowhere after ${acknowledged.sequence}`,
    );
    if (sequence === acknowledged.sequence) assert.equal(left?.modRevision ?? 0, acknowledged.revision);
    else ahead++;
    ledger.set(writer, { sequence, revision: left?.modRevision ?? 0 });
  }
  return ahead;
}
