import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Architecture, goArchitecture } from "./architecture.ts";
import { cacheDir } from "./cache-dir.ts";
import { downloadNerdctl } from "./nerdctl-archive.ts";
import { buildNerdctl } from "./nerdctl-build.ts";
import { NERDCTL_VERSION } from "./nerdctl-version.ts";
import { run } from "./run.ts";

export interface EnsureNerdctlOptions {
  readonly signal?: AbortSignal;
  /** Called with a description of each step. */
  readonly report?: (step: string) => void;
}

// The first major version whose `--network ns:` and `inspect` behave as the agent expects.
const OLDEST_MAJOR = 2;

/**
 * Returns the path of a usable nerdctl: one on the host that is new enough, or in the cache, or from the release
 * archive, or built from its Go module. The last two are stored in the cache.
 */
export async function ensureNerdctl(options: EnsureNerdctlOptions = {}): Promise<string> {
  for (const path of [...onPath(), cachedPath(goArchitecture())]) {
    const version = await readVersion(path);
    if (version !== undefined && Number(version.split(".")[0]) >= OLDEST_MAJOR) return path;
  }
  return await fetchNerdctl(goArchitecture(), options);
}

/**
 * Returns the path of the pinned nerdctl for the architecture, regardless of the host's: from the cache, its release or
 * its Go module.
 */
export async function ensurePinnedNerdctl(
  architecture: Architecture,
  options: EnsureNerdctlOptions = {},
): Promise<string> {
  const cached = cachedPath(architecture);
  return existsSync(cached) ? cached : await fetchNerdctl(architecture, options);
}

async function fetchNerdctl(architecture: Architecture, options: EnsureNerdctlOptions): Promise<string> {
  const report = options.report ?? (() => {});
  const target = cachedPath(architecture);
  report(`downloading nerdctl ${NERDCTL_VERSION}`);
  if (await downloadNerdctl(target, { ...options, architecture })) return target;
  report(
    `the download can't be reached; building nerdctl ${NERDCTL_VERSION} from its Go module (1 to 6 minutes)`,
  );
  await buildNerdctl(target, architecture, options);
  return target;
}

/** Returns the path in the cache. For this machine's architecture it has no suffix, as in earlier versions. */
function cachedPath(architecture: Architecture): string {
  const own = architecture === goArchitecture();
  return join(cacheDir(), "nerdctl", NERDCTL_VERSION, own ? "nerdctl" : `nerdctl-${architecture}`);
}

function onPath(): string[] {
  return (process.env.PATH ?? "")
    .split(":")
    .map((dir) => join(dir, "nerdctl"))
    .filter((path) => existsSync(path));
}

/** Returns a version such as `2.3.5`; `undefined` if the program is missing or prints none. */
async function readVersion(path: string): Promise<string | undefined> {
  if (!existsSync(path)) return undefined;
  const { stdout } = await run(path, ["--version"], { allowFailure: true, timeoutMs: 20_000 });
  return /(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
}
