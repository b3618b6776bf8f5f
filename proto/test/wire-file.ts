import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = join(import.meta.dirname, "wire.txt");
/** The file that describes the services between agents and coordinators in the previous version. */
const PREVIOUS_FILE = join(import.meta.dirname, "previous-agent-wire.txt");

export function readPinnedWire(): Promise<string[]> {
  return readLines(FILE);
}

export function writePinnedWire(lines: readonly string[]): Promise<void> {
  return writeLines(FILE, lines);
}

export function readPreviousWire(): Promise<string[]> {
  return readLines(PREVIOUS_FILE);
}

export function writePreviousWire(lines: readonly string[]): Promise<void> {
  return writeLines(PREVIOUS_FILE, lines);
}

async function readLines(path: string): Promise<string[]> {
  return (await readFile(path, "utf8")).trimEnd().split("\n");
}

function writeLines(path: string, lines: readonly string[]): Promise<void> {
  return writeFile(path, `${lines.join("\n")}\n`);
}
