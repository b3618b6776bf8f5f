import { CloneTargetMode, type GitInitializer } from "@forage/proto/content-service-api/initializer";
import type { NoteProgress } from "../content-actions.ts";
import { WorkspaceError } from "../workspace-error.ts";
import { checkoutLocation } from "./checkout-location.ts";
import { type GitRun, mustGit, runGit } from "./git.ts";
import { credentialLine, parseRemote, type Remote, shownRemote } from "./remote.ts";

export interface GitTools {
  /** Opens the proxy that git's connections go through. It refuses addresses that initializers must not reach. */
  readonly proxyUrl: string;
}

export interface CloneTarget {
  readonly directory: string;
  readonly note: NoteProgress;
  readonly signal: AbortSignal;
}

// Enough history for a look back, and little enough for a fast start.
const COMMIT_DEPTH = 20;
// As git itself checks names of branches; further checks are git's.
const REF = /^(?!-)(?!.*(?:\.\.|@\{|\/\/|\.lock(?:\/|$)))[^\s~^:?*[\\\p{Cc}]{1,250}$/u;
const COMMIT = /^[0-9a-f]{7,64}$/i;

/** Clones as the initializer says. Returns what went differently, or an empty string. Throws a WorkspaceError. */
export async function cloneRepository(
  tools: GitTools,
  target: CloneTarget,
  initializer: GitInitializer,
): Promise<string> {
  const remote = parseRemote("git.remote_uri", initializer.remoteUri);
  const below = checkoutLocation("git.checkout_location", initializer.checkoutLocation);
  const { directory, signal } = target;
  if (await isWorkingCopy({ directory, below, signal })) return "";
  const secret = await credentialsOf(initializer, remote);
  const run: GitRun = { directory, below, secret, proxy: tools.proxyUrl, signal };
  target.note(`cloning ${shownRemote(remote)}`);
  await clone(initializer, remote, { ...run, below: "" }, below);
  const remark = await checkOut(initializer, run);
  return remark;
}

function isWorkingCopy(run: GitRun & { readonly below: string }): Promise<boolean> {
  return runGit(["rev-parse", "--is-inside-work-tree"], run).then(({ exitCode }) => exitCode === 0);
}

async function credentialsOf({ config }: GitInitializer, remote: Remote): Promise<string | undefined> {
  const { authUser = "", authPassword = "" } = config ?? {};
  const given =
    authUser === "" && authPassword === "" ? remote.credentials : { user: authUser, password: authPassword };
  return given && credentialLine(remote, given);
}

async function clone(
  { fullClone }: GitInitializer,
  remote: Remote,
  run: GitRun,
  below: string,
): Promise<void> {
  const depth = fullClone ? [] : ["--depth=1", "--no-single-branch"];
  await mustGit(["clone", "--no-checkout", ...depth.slice(0, 1), "--", remote.url, below || "."], run);
}

async function checkOut({ targetMode, cloneTaget, fullClone }: GitInitializer, run: GitRun): Promise<string> {
  const depth = (commits: number) => (fullClone ? [] : [`--depth=${commits}`]);
  switch (targetMode) {
    case CloneTargetMode.REMOTE_HEAD:
      await mustGit(["checkout", "--force"], run);
      return "";
    case CloneTargetMode.REMOTE_COMMIT: {
      if (!COMMIT.test(cloneTaget)) throw badTarget(cloneTaget, "a commit");
      await mustGit(["fetch", ...depth(COMMIT_DEPTH), "origin", cloneTaget], run);
      await mustGit(["checkout", "--force", "--detach", cloneTaget], run);
      return "";
    }
    case CloneTargetMode.REMOTE_BRANCH: {
      if (!REF.test(cloneTaget)) throw badTarget(cloneTaget, "a branch");
      const ref = `+refs/heads/${cloneTaget}:refs/remotes/origin/${cloneTaget}`;
      const fetched = await runGit(["fetch", ...depth(1), "origin", ref], run);
      if (fetched.exitCode === 0) {
        await mustGit(["checkout", "--force", "-B", cloneTaget, "--track", `origin/${cloneTaget}`], run);
        return "";
      }
      await mustGit(["checkout", "--force", "-B", cloneTaget], run);
      return `the remote has no branch ${cloneTaget}: it begins at the default branch`;
    }
    case CloneTargetMode.LOCAL_BRANCH:
      if (!REF.test(cloneTaget)) throw badTarget(cloneTaget, "a branch");
      await mustGit(["checkout", "--force", "-B", cloneTaget, "--no-track", "origin/HEAD"], run);
      return "";
    default:
      throw new WorkspaceError("INVALID", `git.target_mode: ${targetMode} is unknown`);
  }
}

function badTarget(target: string, what: string): WorkspaceError {
  return new WorkspaceError(
    "INVALID",
    `git.clone_taget: ${JSON.stringify(target.slice(0, 100))} can't be the name of ${what}`,
  );
}
