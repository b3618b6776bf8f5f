import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { systemClock } from "@forage/common/clock";
import { openLevelStore, type Store } from "../../src/store/index.ts";

/** The keys and values of a store, and its revision. */
export interface Contents {
  readonly revision: number;
  readonly values: ReadonlyMap<string, string>;
}

/** Enough revisions for records below the history and for several LevelDB files. */
const REVISIONS = 400;
const HISTORY_REVISIONS = 150;
const KEYS = 90;
export const VALUE_BYTES = 3000;

/** Creates a directory that is removed when the test ends. */
export function tempDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-store-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export function openSample(
  dir: string,
  historyRevisions = HISTORY_REVISIONS,
): ReturnType<typeof openLevelStore> {
  return openLevelStore({ dir, clock: systemClock, historyRevisions, ballastBytes: 4096 });
}

/**
 * Creates a store in `dir` whose files are those of a closed store or of a killed process. They
 * differ only in LevelDB's log and in the effects of closing.
 */
export async function makeSample(dir: string, end: "closed" | "killed"): Promise<Contents> {
  const live = `${dir}.live`;
  const first = await openSample(live);
  await fill(first, 1, REVISIONS / 2);
  await first.compact(first.revision);
  await first.close();
  const second = await openSample(live);
  await fill(second, REVISIONS / 2 + 1, REVISIONS);
  const contents = await contentsOf(second);
  if (end === "closed") await second.close();
  // LOCK is not copied: reading it in this process would release it.
  cpSync(live, dir, { recursive: true, filter: (file) => !file.endsWith("/LOCK") });
  await second.close();
  rmSync(live, { recursive: true });
  return contents;
}

export async function contentsOf(store: Store): Promise<Contents> {
  const { records, revision } = await store.range("");
  return { revision, values: new Map(records.map(({ key, value }) => [key, Buffer.from(value).toString()])) };
}

/**
 * Returns name, size and SHA-256 of every file in the directory except LevelDB's lock and its logs.
 */
export function fingerprint(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: "utf8" })
    .filter((name) => !/\/?(LOCK|LOG|LOG\.old)$/.test(name))
    .filter((name) => statSync(join(dir, name)).isFile())
    .sort()
    .map(
      (name) =>
        `${name} ${createHash("sha256")
          .update(readFileSync(join(dir, name)))
          .digest("hex")}`,
    );
}

/**
 * Writes two keys in each revision: some that stay, most that are overwritten, some that are
 * deleted.
 */
async function fill(store: Store, from: number, through: number): Promise<void> {
  const pending: Promise<unknown>[] = [];
  for (let i = from; i <= through; i++) {
    const value = Buffer.from(`${i}`.padEnd(VALUE_BYTES, "."));
    const stays = i <= REVISIONS / 2;
    const key = stays ? `s/${String(i).padStart(3, "0")}` : `k/${String(i % KEYS).padStart(3, "0")}`;
    const other = `o/${String((i * 7) % KEYS).padStart(3, "0")}`;
    const second =
      i % 10 === 0
        ? ({ type: "delete", key: other } as const)
        : ({ type: "put", key: other, value } as const);
    pending.push(store.txn([], [{ type: "put", key, value }, second]));
    if (pending.length === 20) await Promise.all(pending.splice(0));
  }
  await Promise.all(pending);
}
