import {
  CloneTargetMode,
  GitAuthMethod,
  type GitInitializer,
} from "@forage/proto/content-service-api/initializer";
import type { WorkspaceOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { NoteProgress } from "../content-actions.ts";
import { WorkspaceError } from "../workspace-error.ts";
import { checkoutLocation } from "./checkout-location.ts";
import { type GitRun, gitError, mustGit, runGit } from "./git.ts";
import { oneTimeCredentials, type SecretCache } from "./one-time-secrets.ts";
import type { RefuseAddress } from "./reachable.ts";
import { credentialLine, parseRemote, type Remote, shownRemote } from "./remote.ts";

export interface GitTools {
  /** The proxy for git's connections. It rejects addresses that initializers must not reach. */
  readonly proxyUrl: string;
  readonly refuse: RefuseAddress;
  readonly secrets: SecretCache;
}

export interface CloneTarget {
  readonly directory: string;
  readonly order: Pick<WorkspaceOrder, "instanceId">;
  readonly note: NoteProgress;
  readonly signal: AbortSignal;
}

// Enough history to see recent changes, and little enough for a fast start.
const COMMIT_DEPTH = 20;
// Each submodule costs a few processes and a connection.
const SUBMODULES_MAX = 200;
// git's own rule for branch names; git performs further checks.
const REF = /^(?!-)(?!.*(?:\.\.|@\{|\/\/|\.lock(?:\/|$)))[^\s~^:?*[\\\p{Cc}]{1,250}$/u;
const COMMIT = /^[0-9a-f]{7,64}$/i;
const CONFIG_KEY = /^[A-Za-z][A-Za-z0-9-]{0,63}(\.[^\n\0]{1,500})?\.[A-Za-z][A-Za-z0-9-]{0,63}$/;
const CONFIG_VALUE_BYTES_MAX = 8 * 1024;
const CONFIG_ENTRIES_MAX = 200;

/**
 * Clones as the initializer specifies. Returns a description of deviations, or an empty string. Throws a
 * WorkspaceError.
 */
export async function cloneRepository(
  tools: GitTools,
  target: CloneTarget,
  initializer: GitInitializer,
): Promise<string> {
  const { run, remote, below } = await gitRunOf(tools, target, initializer);
  if (await isWorkingCopy(run)) return "";
  target.note(`cloning ${shownRemote(remote)}`);
  const depth = initializer.fullClone ? [] : ["--depth=1"];
  await mustGit(["clone", "--no-checkout", ...depth, "--", remote.url, below || "."], { ...run, below: "" });
  // A shallow clone is configured to fetch only its first branch.
  await mustGit(["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"], run);
  const remark = await checkOut(initializer, run);
  const submodules = await updateSubmodules(run);
  await configure(initializer, run);
  return [remark, submodules].filter((it) => it !== "").join("; ");
}

/** Checks the initializer and prepares the credentials for its remote. */
export async function gitRunOf(
  tools: GitTools,
  { directory, order, signal }: CloneTarget,
  initializer: GitInitializer,
): Promise<{ readonly run: GitRun; readonly remote: Remote; readonly below: string }> {
  const remote = parseRemote("git.remote_uri", initializer.remoteUri);
  const below = checkoutLocation("git.checkout_location", initializer.checkoutLocation);
  const { authentication, authUser = "", authPassword = "", authOts = "" } = initializer.config ?? {};
  let credentials = remote.credentials;
  if (authentication === GitAuthMethod.BASIC_AUTH) credentials = { user: authUser, password: authPassword };
  if (authentication === GitAuthMethod.BASIC_AUTH_OTS)
    credentials = await oneTimeCredentials(order.instanceId, authOts, { ...tools, signal });
  const secret = credentials && credentialLine(remote, credentials);
  return { remote, below, run: { directory, below, secret, proxy: tools.proxyUrl, signal } };
}

/** Fetches and checks out what the initializer specifies. Returns a description of deviations, or an empty string. */
export async function checkOut(
  { targetMode, cloneTaget, fullClone }: GitInitializer,
  run: GitRun,
): Promise<string> {
  const depth = (commits: number) => (fullClone ? [] : [`--depth=${commits}`]);
  switch (targetMode) {
    case CloneTargetMode.REMOTE_HEAD:
      // A repository without commits has nothing to check out.
      if ((await runGit(["rev-parse", "--verify", "--quiet", "HEAD"], run)).exitCode === 0)
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
        await mustGit(["checkout", "--force", "-B", cloneTaget, `refs/remotes/origin/${cloneTaget}`], run);
        await mustGit(["config", `branch.${cloneTaget}.remote`, "origin"], run);
        await mustGit(["config", `branch.${cloneTaget}.merge`, `refs/heads/${cloneTaget}`], run);
        return "";
      }
      if (!/couldn't find remote ref/i.test(fetched.stderr)) throw gitError("fetch", fetched);
      await mustGit(["checkout", "--force", "-B", cloneTaget], run);
      return `the remote has no branch ${cloneTaget}: it begins at the default branch`;
    }
    case CloneTargetMode.LOCAL_BRANCH:
      if (!REF.test(cloneTaget)) throw badTarget(cloneTaget, "a branch");
      await mustGit(["checkout", "--force", "--no-track", "-B", cloneTaget, "origin/HEAD"], run);
      return "";
    default:
      throw new WorkspaceError("INVALID", `git.target_mode: ${targetMode} is unknown`);
  }
}

export function isWorkingCopy(run: GitRun): Promise<boolean> {
  return runGit(["rev-parse", "--is-inside-work-tree"], { ...run, proxy: undefined }).then(
    ({ exitCode }) => exitCode === 0,
  );
}

/**
 * Fetches each submodule separately. A submodule that can't be fetched, for example because it is private, affects
 * neither the others nor the workspace.
 */
async function updateSubmodules(run: GitRun): Promise<string> {
  const offline = { ...run, proxy: undefined };
  if ((await runGit(["cat-file", "-e", "HEAD:.gitmodules"], offline)).exitCode !== 0) return "";
  const listed = await runGit(
    ["config", "--blob", "HEAD:.gitmodules", "--null", "--get-regexp", "^submodule\\..*\\.path$"],
    offline,
  );
  const { paths, problem } = submodulesOf(listed.stdout);
  const failed: string[] = [];
  for (const path of paths) {
    const options = ["--init", "--recursive", "--depth=1"];
    const { exitCode, stderr } = await runGit(["submodule", "update", ...options, "--", path], run);
    if (exitCode !== 0) failed.push(`${path}: ${stderr}`);
  }
  if (problem !== undefined) failed.push(problem);
  return failed.length === 0 ? "" : `submodules could not be fetched: ${failed.join("; ")}`;
}

/** Returns the paths that `git config --null --get-regexp` has listed, and whether some were omitted. Pure. */
export function submodulesOf(listing: string): {
  readonly paths: readonly string[];
  readonly problem: string | undefined;
} {
  const paths = listing.split("\0").flatMap((entry) => entry.split("\n").slice(1, 2));
  const problem = paths.length > SUBMODULES_MAX ? `only the first ${SUBMODULES_MAX} are fetched` : undefined;
  return { paths: paths.slice(0, SUBMODULES_MAX), problem };
}

/** Applies the initializer's settings last, so that none takes effect on this host. */
async function configure({ config, upstreamRemoteUri }: GitInitializer, run: GitRun): Promise<void> {
  if (upstreamRemoteUri !== "") {
    const upstream = parseRemote("git.upstream_Remote_uri", upstreamRemoteUri);
    await mustGit(["remote", "add", "--", "upstream", upstream.url], run);
  }
  const entries = Object.entries(config?.customConfig ?? {});
  if (entries.length > CONFIG_ENTRIES_MAX)
    throw new WorkspaceError("INVALID", `git.config.custom_config: more than ${CONFIG_ENTRIES_MAX} entries`);
  for (const [key, value] of entries) {
    if (!CONFIG_KEY.test(key))
      throw new WorkspaceError(
        "INVALID",
        `git.config.custom_config: ${JSON.stringify(key.slice(0, 100))} is not a key`,
      );
    if (Buffer.byteLength(value) > CONFIG_VALUE_BYTES_MAX || value.includes("\0"))
      throw new WorkspaceError(
        "INVALID",
        `git.config.custom_config: the value of ${key} is too long or not text`,
      );
    await mustGit(["config", "--local", "--", key, value], { ...run, proxy: undefined });
  }
}

function badTarget(target: string, what: string): WorkspaceError {
  return new WorkspaceError(
    "INVALID",
    `git.clone_taget: ${JSON.stringify(target.slice(0, 100))} can't be the name of ${what}`,
  );
}
