import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
/** The files of the code under test and of the simulation. */
const SOURCES = ["{agent,common,coordinator,identity,scheduler}/src/**/*.ts", "sim/**/*.ts"];

/** Returns a seed below `end` that is pseudo-random, but the same for the same sources. */
export function seedOfSources(end: number): number {
  return hashOfSources().readUIntBE(0, 6) % end;
}

/** Returns a hash of the sources, and of the further files that match the patterns. */
export function hashOfSources(more: readonly string[] = []): Buffer {
  const hash = createHash("sha256");
  for (const path of globSync([...SOURCES, ...more], { cwd: ROOT }).sort()) {
    const bytes = readFileSync(join(ROOT, path));
    hash.update(`${path}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest();
}
