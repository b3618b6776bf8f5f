import { GitStatus, type WorkspaceInitializer } from "@forage/proto/content-service-api/initializer";
import { CONFINED_DIRECTORY, runConfined } from "./confined.ts";
import { checkoutLocation } from "./initialize/checkout-location.ts";
import { safeSettings } from "./initialize/update-working-copy.ts";

export interface StatusOf {
  readonly directory: string;
  /** The working copy below the directory. Empty: the directory itself. */
  readonly below: string;
  readonly signal: AbortSignal;
}

// People read a short list. The totals include all entries.
const LISTED_MAX = 100;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
const TIMEOUT_MS = 120_000;
const GIT_DIRECTORY = "/tmp/git";

/**
 * A script that creates a repository from Git's own files, with safe settings only, which it reads from the secret's
 * file. Settings in the content may name programs, so Git must not read them. The content is not changed.
 */
const OPEN_REPOSITORY = [
  "set -e",
  'cd -- "$1"',
  "test -d .git && test ! -L .git",
  `mkdir ${GIT_DIRECTORY}`,
  `cp .git/HEAD ${GIT_DIRECTORY}/HEAD`,
  `cp /tmp/secret ${GIT_DIRECTORY}/config`,
  `for name in index packed-refs refs objects info shallow; do ln -s "$PWD/.git/$name" "${GIT_DIRECTORY}/$name"; done`,
  "shift",
  'exec "$@"',
].join("\n");

/** Returns the location of the first working copy that the initializer creates, or undefined if it creates none. */
export function checkoutLocationOf(initializer: WorkspaceInitializer | undefined): string | undefined {
  const { spec } = initializer ?? {};
  switch (spec?.$case) {
    case "git":
    case "backup":
      return checkoutLocation("checkout_location", spec.value.checkoutLocation);
    case "prebuild": {
      const [first] = spec.value.git;
      return first && checkoutLocation("checkout_location", first.checkoutLocation);
    }
    case "composite":
      for (const part of spec.value.initializer) {
        const found = checkoutLocationOf(part);
        if (found !== undefined) return found;
      }
      return undefined;
    default:
      return undefined;
  }
}

/** Returns the Git status, or undefined if there is no working copy. */
export async function readGitStatus(of: StatusOf): Promise<GitStatus | undefined> {
  const { directory, below, signal } = of;
  const settings = await safeSettings({ directory, proxy: undefined, signal }, below);
  if (settings === undefined) return undefined;
  const status = await git(of, settings, [
    ...["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=all"],
  ]);
  if (status === undefined) return undefined;
  const unpushed = await git(of, settings, ["log", "-z", "--format=%h: %s", "HEAD", "--not", "--remotes"]);
  return toGitStatus(status, unpushed ?? "");
}

/** Parses the output of `git status --porcelain=v2 --branch -z` and of `git log -z`. */
export function toGitStatus(status: string, log: string): GitStatus {
  const [uncommitted, untracked]: [string[], string[]] = [[], []];
  let [branch, latestCommit] = ["", ""];
  const fields = status.split("\0");
  for (let i = 0; i < fields.length; i += 1) {
    const field = fields[i] ?? "";
    const words = field.split(" ");
    if (field.startsWith("# branch.head ")) branch = words.slice(2).join(" ");
    if (field.startsWith("# branch.oid ")) latestCommit = words[2] ?? "";
    if (field.startsWith("? ")) untracked.push(field.slice(2));
    if (field.startsWith("1 ")) uncommitted.push(words.slice(8).join(" "));
    if (field.startsWith("u ")) uncommitted.push(words.slice(10).join(" "));
    if (field.startsWith("2 ")) {
      uncommitted.push(words.slice(9).join(" "));
      // The next field is the former name.
      i += 1;
    }
  }
  const unpushed = log.split("\0").filter((line) => line !== "");
  return GitStatus.fromPartial({
    branch: branch === "(detached)" ? "" : branch,
    latestCommit: latestCommit === "(initial)" ? "" : latestCommit,
    uncommitedFiles: uncommitted.slice(0, LISTED_MAX),
    untrackedFiles: untracked.slice(0, LISTED_MAX),
    unpushedCommits: unpushed.slice(0, LISTED_MAX),
    totalUncommitedFiles: BigInt(uncommitted.length),
    totalUntrackedFiles: BigInt(untracked.length),
    totalUnpushedCommits: BigInt(unpushed.length),
  });
}

async function git(
  { directory, below, signal }: StatusOf,
  settings: string,
  args: readonly string[],
): Promise<string | undefined> {
  const path = below === "" ? "." : `./${below}`;
  const { exitCode, stdout } = await runConfined(
    {
      file: "sh",
      args: ["-c", OPEN_REPOSITORY, "sh", path, "git", "-c", "core.fsmonitor=false", ...args],
      ...{ directory, secret: settings, offline: true, background: true },
      // Some files may be readable only by the container's users.
      capabilities: ["dac_read_search"],
      env: {
        ...{
          GIT_DIR: GIT_DIRECTORY,
          GIT_WORK_TREE: `${CONFINED_DIRECTORY}/${below}`,
          GIT_OPTIONAL_LOCKS: "0",
        },
        ...{ GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" },
        ...{ GIT_CONFIG_COUNT: "2", GIT_CONFIG_KEY_0: "safe.directory", GIT_CONFIG_VALUE_0: "*" },
        ...{ GIT_CONFIG_KEY_1: "log.showSignature", GIT_CONFIG_VALUE_1: "false" },
      },
    },
    { timeoutMs: TIMEOUT_MS, signal, outputBytesMax: OUTPUT_BYTES_MAX },
  );
  return exitCode === 0 ? stdout : undefined;
}
