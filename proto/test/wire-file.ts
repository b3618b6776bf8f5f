import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = join(import.meta.dirname, "wire.txt");

export async function readPinnedWire(): Promise<string[]> {
  return (await readFile(FILE, "utf8")).trimEnd().split("\n");
}

export async function writePinnedWire(lines: readonly string[]): Promise<void> {
  await writeFile(FILE, `${lines.join("\n")}\n`);
}
