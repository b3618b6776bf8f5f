import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { randomOf } from "@forage/common/random";
import { StoreError, salvageLevelStore } from "../../src/store/index.ts";
import {
  bringBackOlder,
  changeHistory,
  cut,
  cutNewestLog,
  type Damage,
  databaseFiles,
  deleteEntry,
  flipByte,
  overwriteHead,
  putStranger,
  remove,
  removeDatabase,
  removeNewestLog,
  swapValues,
  takeHeadOfOther,
} from "./damage.ts";
import { type Contents, contentsOf, fingerprint, makeSample, openSample } from "./sample-store.ts";

interface Case {
  readonly damage: Damage;
  readonly message: RegExp;
  /** The number of keys that may be missing or outdated after salvage. */
  readonly lost: number;
}

const MISSING = /log entr(y|ies) of revisions? \d+.* missing|records as of revision|No such file/;
const MOST = Number.POSITIVE_INFINITY;

/** The cases in which the store must be refused, with a matching message. */
const REFUSED: Record<string, Case> = {
  // The amount of log in the second half depends on how writes were grouped. The 200 keys of the
  // first run are never lost.
  "the log file is cut in half": { damage: cutNewestLog(0.5), message: MISSING, lost: 180 },
  "the log file is empty": { damage: cutNewestLog(0), message: MISSING, lost: MOST },
  "the log file is gone": { damage: removeNewestLog, message: MISSING, lost: MOST },
  "MANIFEST is cut in half": {
    damage: cut("MANIFEST", 0.5),
    message: /missing|records as of|not open/,
    lost: 0,
  },
  "MANIFEST is empty": { damage: cut("MANIFEST", 0), message: /missing|not open/, lost: 0 },
  "MANIFEST is gone": { damage: remove("MANIFEST"), message: /does not open: .*MANIFEST/, lost: 0 },
  "CURRENT is empty": { damage: cut("CURRENT", 0), message: /does not open: .*CURRENT/, lost: 0 },
  "the database is gone": { damage: removeDatabase, message: /missing/, lost: MOST },
  "HEAD is gone": {
    damage: (dir) => unlinkSync(join(dir, "HEAD")),
    message: /HEAD file is missing/,
    lost: 0,
  },
  "HEAD is damaged": { damage: overwriteHead, message: /HEAD file is damaged/, lost: 0 },
  "HEAD is of another store": {
    damage: takeHeadOfOther,
    message: /HEAD file is of the store [\w-]+, the/,
    lost: 0,
  },
  "the newest log entry is deleted": {
    damage: deleteEntry("l/", -1),
    message: /log entry of revision 400 is missing: revision 400 was acknowledged/,
    lost: 2,
  },
  "a log entry is deleted": {
    damage: deleteEntry("l/", 20),
    message: /log entry of revision \d+ is missing: revision \d+ is there/,
    lost: 2,
  },
  "the oldest log entry is deleted": {
    damage: deleteEntry("l/", 0),
    message: /log entry of revision \d+ is missing: revision \d+ is there/,
    lost: 2,
  },
  "a log entry is of another history": {
    damage: changeHistory,
    message: /log entry of revision \d+ doesn't continue the history/,
    lost: 0,
  },
  "a record is deleted": {
    damage: deleteEntry("k/", 3),
    message: /of \d+ records as of revision \d+, \d+ are there/,
    lost: 1,
  },
  "a record is replaced by another": {
    damage: swapValues,
    message: /record "[kos]\/\d+": its checksum does not match/,
    lost: 1,
  },
  "an older state of a record is back": {
    damage: bringBackOlder,
    message: /the records as of revision \d+ have a wrong sum/,
    lost: 1,
  },
  "a description is deleted": {
    damage: deleteEntry("m/", 0),
    message: /description "base" is missing/,
    lost: 0,
  },
  "a stranger is in it": {
    damage: putStranger,
    message: /unknown entry "x\/1" is unexpected/,
    lost: 0,
  },
};

for (const kind of ["killed", "closed"] as const) {
  describe(`a ${kind} store`, () => {
    let root = "";
    let sample = "";
    let contents: Contents;
    let lineage = "";

    before(async () => {
      root = mkdtempSync(join(tmpdir(), "forage-corruption-"));
      sample = join(root, "sample");
      contents = await makeSample(sample, kind);
      lineage = await lineageOf(copy("lineage"));
    });
    after(() => rmSync(root, { recursive: true, force: true }));

    const copy = (name: string): string => {
      const dir = join(root, name.replaceAll(/\W+/g, "-"));
      cpSync(sample, dir, { recursive: true });
      return dir;
    };

    test("opens without damage", async () => {
      const store = await openSample(copy("intact"));
      assert.deepEqual(await contentsOf(store), contents);
      await store.verify();
      await store.close();
    });

    for (const [name, { damage, message, lost }] of Object.entries(REFUSED)) {
      test(`refuses the damage by name, keeps the files, and salvages the rest: ${name}`, async () => {
        const dir = copy(name);
        await damage(dir);
        const found = fingerprint(dir);
        for (let attempt = 0; attempt < 2; attempt++) {
          const error = await refusal(dir);
          assert.match(error.message, message);
          assert.match(error.message, /Restore a backup/);
          assert.deepEqual(fingerprint(dir), found);
        }
        if (name !== "the database is gone") await checkSalvage(dir, { contents, lineage }, lost);
      });
    }

    for (const suffix of [".log", ".ldb"]) {
      test(`refuses flipped bytes in ${suffix} by name, or serves all data`, async (t) => {
        let refused = 0;
        for (let seed = 0; seed < FLIPS; seed++) {
          const dir = copy(`flip-${suffix}-${seed}`);
          flipByte(dir, suffix, randomOf(seed));
          refused += await checkRefusedOrWhole(dir, contents);
          rmSync(dir, { recursive: true });
        }
        t.diagnostic(`${refused} of ${FLIPS} refused`);
        assert.ok(refused > 0, "no flip was noticed");
      });
    }

    test("refuses a missing CURRENT by name, or serves all data", async () => {
      const dir = copy("current-gone");
      await remove("CURRENT")(dir);
      await checkRefusedOrWhole(dir, contents);
    });

    test("refuses any missing .ldb by name", async () => {
      for (const file of databaseFiles(sample, ".ldb")) {
        const dir = copy(`gone-${file}`);
        unlinkSync(join(dir, "db", file));
        assert.match((await refusal(dir)).message, /does not open: .*missing files/);
      }
    });

    test("opens with one damaged slot of HEAD, which is a torn write", async () => {
      for (const at of [0, 4096]) {
        const dir = copy(`slot-${at}`);
        const bytes = readFileSync(join(dir, "HEAD"));
        bytes[at + 20] = 0;
        writeFileSync(join(dir, "HEAD"), bytes);
        const store = await openSample(dir);
        assert.deepEqual(await contentsOf(store), contents);
        await store.close();
      }
    });
  });
}

/** The number of tested positions; each needs an opening of the store. */
const FLIPS = 30;

async function lineageOf(dir: string): Promise<string> {
  const store = await openSample(dir);
  await store.close();
  return store.lineage;
}

async function refusal(dir: string): Promise<StoreError> {
  const store = await openSample(dir).catch((error: unknown) => error);
  assert.ok(store instanceof StoreError, `it was opened: ${String(store)}`);
  assert.equal(store.code, "CORRUPT");
  return store;
}

/**
 * Returns 1 if the store was refused, and 0 if it has all data, because a flip in unused bytes is
 * harmless.
 */
async function checkRefusedOrWhole(dir: string, contents: Contents): Promise<number> {
  const store = await openSample(dir).catch((error: unknown) => error);
  if (store instanceof StoreError) {
    assert.equal(store.code, "CORRUPT");
    assert.match(
      store.message,
      /record "|revisions? \d+|records as of|description "|does not open|can't be read/,
    );
    return 1;
  }
  const opened = store as Awaited<ReturnType<typeof openSample>>;
  assert.deepEqual(await contentsOf(opened), contents);
  await opened.close();
  return 0;
}

/**
 * Checks that undamaged data is still there, and that the history continues if the report states
 * that no data is lost.
 */
async function checkSalvage(
  dir: string,
  { contents, lineage }: { readonly contents: Contents; readonly lineage: string },
  lost: number,
): Promise<void> {
  const report = await salvageLevelStore({ dir });
  const store = await openSample(dir);
  const salvaged = await contentsOf(store);
  assert.equal(salvaged.revision, report.revision);
  assert.equal(store.epoch, report.epoch);
  const lossless = report.problems.length === 0;
  assert.equal(
    store.lineage === lineage,
    lossless,
    "the lineage changes with a lossy salvage, and only then",
  );
  if (report.problems.length === 0) assert.deepEqual(salvaged, contents);
  else assert.ok(salvaged.revision > contents.revision);
  const keys = new Set([...contents.values.keys(), ...salvaged.values.keys()]);
  const changed = [...keys].filter((key) => contents.values.get(key) !== salvaged.values.get(key));
  assert.ok(
    changed.length <= lost,
    `${changed.length} keys are not as they were: ${changed} (${report.problems})`,
  );
  await store.txn([], [{ type: "put", key: "after", value: Buffer.from("1") }]);
  await store.verify();
  await store.close();
}
