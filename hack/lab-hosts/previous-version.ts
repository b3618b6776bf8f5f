import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheDir } from "../lib/cache-dir.ts";
import { run } from "../lib/run.ts";

/** The version from which an upgrade to this checkout is tested. */
export interface PreviousVersion {
  /** A tag or a commit. */
  readonly name: string;
  readonly commit: string;
}

/** The tags of versions. Tags of the checkout's own commit are this version. */
export interface VersionTags {
  /** All tags of the checkout's history, the newest version first. */
  readonly all: readonly string[];
  readonly own: readonly string[];
}

/** The file with the commit to upgrade from while no version has a tag. */
const COMMIT_FILE = join(import.meta.dirname, "previous-version");
const TAG = "v[0-9]*";
/** The build downloads npm packages, generates code and bundles the programs. */
const BUILD_LIMIT_MS = 30 * 60_000;

/** Returns the newest tag of an earlier version, or else the commit that is named instead. */
export function choosePrevious({ all, own }: VersionTags, named: string): string {
  return all.find((tag) => !own.includes(tag)) ?? named.trim();
}

/** Returns the previous version, or the reason why the checkout lacks it, such as an incomplete history. */
export async function findPreviousVersion(checkout: string): Promise<PreviousVersion | string> {
  const git = async (...args: readonly string[]): Promise<string | undefined> => {
    // Root may work in another user's checkout.
    const { exitCode, stdout } = await run("git", ["-c", `safe.directory=${checkout}`, ...args], {
      cwd: checkout,
      allowFailure: true,
    });
    return exitCode === 0 ? stdout : undefined;
  };
  const tags = async (...of: readonly string[]): Promise<readonly string[]> =>
    ((await git("tag", "--list", TAG, "--sort=-version:refname", ...of)) ?? "").split("\n").filter(Boolean);
  const all = await tags("--merged", "HEAD");
  const own = await tags("--points-at", "HEAD");
  const name = choosePrevious({ all, own }, readFileSync(COMMIT_FILE, "utf8"));
  const commit = (await git("rev-parse", "--verify", "--quiet", `${name}^{commit}`))?.trim();
  if (commit === undefined)
    return `this checkout does not have the previous version, ${name}: get the whole history with git fetch --unshallow --tags`;
  return { name, commit };
}

/**
 * Returns a directory with packages of that version under the given version number. Builds them from its own sources
 * the first time.
 */
export async function ensurePreviousPackages(
  checkout: string,
  { commit }: PreviousVersion,
  version: string,
): Promise<string> {
  const parent = join(cacheDir(), "previous-packages");
  const dir = join(parent, `${commit}-${version}`);
  if (existsSync(dir)) return dir;
  mkdirSync(parent, { recursive: true });
  const sources = mkdtempSync(join(tmpdir(), "forage-previous-"));
  const partial = mkdtempSync(join(parent, "partial-"));
  try {
    const archive = join(sources, "sources.tar");
    await run("git", ["-c", `safe.directory=${checkout}`, "archive", `--output=${archive}`, commit], {
      cwd: checkout,
    });
    await run("tar", ["--extract", "--file", archive, "--directory", sources]);
    await run(join(sources, "hack/package"), ["--format", "deb", "--version", version, "--out", partial], {
      cwd: sources,
      timeoutMs: BUILD_LIMIT_MS,
    });
    if (readdirSync(partial).length === 0) throw new Error(`${commit} built no packages`);
    // Another run may have been faster.
    if (!existsSync(dir)) renameSync(partial, dir);
  } finally {
    rmSync(sources, { recursive: true, force: true });
    rmSync(partial, { recursive: true, force: true });
  }
  return dir;
}
