import assert from "node:assert/strict";
import {
  closeSync,
  cpSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Random } from "@forage/common/random";
import { ClassicLevel } from "classic-level";
import { CHAIN_START, decodeEntry, encodeEntry } from "../../src/store/format/entry-codec.ts";
import { decodeRecord, encodeRecord } from "../../src/store/format/record-codec.ts";
import { packBytes } from "../../src/store/packed-bytes.ts";
import { openSample, VALUE_BYTES } from "./sample-store.ts";

/** Damages the store in the directory. */
export type Damage = (dir: string) => void | Promise<void>;

export function databaseFiles(dir: string, part: string): string[] {
  return readdirSync(join(dir, "db"))
    .filter((name) => name.includes(part))
    .sort();
}

export function cut(part: string, keep: number): Damage {
  return (dir) => {
    const [name = ""] = databaseFiles(dir, part);
    const file = join(dir, "db", name);
    truncateSync(file, Math.floor(statSync(file).size * keep));
  };
}

export function remove(part: string): Damage {
  return (dir) => unlinkSync(join(dir, "db", databaseFiles(dir, part)[0] ?? ""));
}

export function cutNewestLog(keep: number): Damage {
  return (dir) => {
    const file = join(dir, "db", databaseFiles(dir, ".log").at(-1) ?? "");
    truncateSync(file, Math.floor(statSync(file).size * keep));
  };
}

export function removeNewestLog(dir: string): void {
  unlinkSync(join(dir, "db", databaseFiles(dir, ".log").at(-1) ?? ""));
}

/** Deletes the entry at the given position among those with the prefix. */
export function deleteEntry(prefix: string, at: number): Damage {
  return async (dir) => {
    await withDatabase(dir, async (db) => {
      const keys = await db.keys({ gte: prefix, lt: `${prefix}~` }).all();
      await db.del(keys.at(at) ?? assert.fail());
    });
  };
}

export async function swapValues(dir: string): Promise<void> {
  await withDatabase(dir, async (db) => {
    const [first, second] = await db.keys({ gte: "k/", limit: 2 }).all();
    await db.put(first ?? "", (await db.get(second ?? "")) ?? Buffer.alloc(0));
  });
}

export async function putStranger(dir: string): Promise<void> {
  await withDatabase(dir, (db) => db.put("x/1", Buffer.from("hello")));
}

/**
 * Restores older tables, as if LevelDB had lost a newer one: each record is well-formed, but
 * outdated.
 */
export async function bringBackOlder(dir: string): Promise<void> {
  await withDatabase(dir, async (db) => {
    const [[dbKey, value] = ["", Buffer.alloc(0)]] = await db.iterator({ gte: "k/", limit: 1 }).all();
    const record = decodeRecord(dbKey, value);
    await db.put(dbKey, encodeRecord({ ...record, value: packBytes(Buffer.from("older")) }).value);
  });
}

export async function changeHistory(dir: string): Promise<void> {
  await withDatabase(dir, async (db) => {
    const entries = await db.iterator({ gte: "l/", lt: "l/~" }).all();
    const [dbKey, value] = entries[10] ?? assert.fail();
    const { revision, changes } = decodeEntry(dbKey, value);
    await db.put(dbKey, encodeEntry({ revision, changes, bytes: 0 }, CHAIN_START).value);
  });
}

export async function takeHeadOfOther(dir: string): Promise<void> {
  const other = await openSample(`${dir}.other`);
  await other.close();
  cpSync(join(`${dir}.other`, "HEAD"), join(dir, "HEAD"));
}

async function withDatabase(
  dir: string,
  run: (db: ClassicLevel<string, Buffer>) => Promise<void>,
): Promise<void> {
  const db = new ClassicLevel<string, Buffer>(join(dir, "db"), {
    valueEncoding: "buffer",
    compression: false,
  });
  await db.open();
  await run(db);
  await db.close();
}

export function flipByte(dir: string, suffix: string, random: Random): void {
  const files = databaseFiles(dir, suffix).filter((name) => statSync(join(dir, "db", name)).size > 0);
  const file = join(dir, "db", random.pick(files));
  const bytes = readFileSync(file);
  const at = random.below(bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
  writeFileSync(file, bytes);
}

export function removeDatabase(dir: string): void {
  rmSync(join(dir, "db"), { recursive: true });
}

export function overwriteHead(dir: string): void {
  writeFileSync(join(dir, "HEAD"), "x".repeat(5000));
}

/** Flips one byte of each value in the tables that LevelDB has open. */
export function flipLiveRecords(dir: string): void {
  for (const name of databaseFiles(dir, ".ldb")) {
    const file = join(dir, "db", name);
    const bytes = readFileSync(file);
    const handle = openSync(file, "r+");
    for (let at = bytes.indexOf(FILLING); at !== -1; at = bytes.indexOf(FILLING, at + VALUE_BYTES)) {
      writeSync(handle, "X", at);
    }
    closeSync(handle);
  }
}

/** The main content of sample values. */
const FILLING = ".".repeat(64);
