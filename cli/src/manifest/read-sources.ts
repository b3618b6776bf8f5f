import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { CliError } from "../errors.ts";
import type { Source } from "./source.ts";

/** The size limit of a file. The coordinator accepts requests of up to 4 MiB. */
const MAX_BYTES = 16 * 1024 * 1024;
const ENDINGS = [".yaml", ".yml", ".json"];

/**
 * Reads the arguments of `-f`: files, directories (their manifests sorted by name, without
 * subdirectories), or `-` for standard input.
 */
export async function readSources(names: readonly string[], stdin: Readable): Promise<Source[]> {
  if (names.length === 0)
    throw new CliError("USAGE", "no manifest: name one with -f FILE, a directory, or - for standard input");
  if (names.filter((name) => name === "-").length > 1)
    throw new CliError("USAGE", "standard input can be read only once");
  const sources: Source[] = [];
  for (const name of names) {
    if (name === "-") sources.push({ name: "standard input", text: await readStream(stdin) });
    else for (const path of expand(name)) sources.push({ name: path, text: readText(path) });
  }
  return sources;
}

function expand(name: string): string[] {
  try {
    if (!statSync(name).isDirectory()) return [name];
    const files = readdirSync(name).filter((file) => ENDINGS.some((ending) => file.endsWith(ending)));
    if (files.length === 0)
      throw new CliError("MANIFEST", `${name} holds no manifest (${ENDINGS.join(", ")})`);
    return files.sort().map((file) => join(name, file));
  } catch (error) {
    throw unreadable(name, error);
  }
}

function readText(path: string): string {
  try {
    return decode(path, readFileSync(path));
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function readStream(stdin: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > MAX_BYTES) break;
    chunks.push(bytes);
  }
  if (length > MAX_BYTES) throw tooLong("standard input");
  return decode("standard input", Buffer.concat(chunks));
}

function decode(name: string, bytes: Buffer): string {
  if (bytes.length > MAX_BYTES) throw tooLong(name);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new CliError("MANIFEST", `${name} is not UTF-8 text`, { cause: error });
  }
}

function tooLong(name: string): CliError {
  return new CliError("MANIFEST", `${name} is longer than ${MAX_BYTES / 1024 / 1024} MiB`);
}

function unreadable(name: string, error: unknown): unknown {
  if (error instanceof CliError) return error;
  const { code } = error as NodeJS.ErrnoException;
  const what = code === "ENOENT" ? "does not exist" : `can't be read: ${code}`;
  return new CliError("MANIFEST", `${name} ${what}`, { cause: error });
}
