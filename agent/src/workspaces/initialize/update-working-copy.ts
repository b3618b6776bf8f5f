import type { GitInitializer } from "@forage/proto/content-service-api/initializer";
import { runConfined } from "../confined.ts";
import { WorkspaceError } from "../workspace-error.ts";
import {
  type CloneTarget,
  checkOut,
  cloneRepository,
  type GitTools,
  gitRunOf,
  isWorkingCopy,
} from "./clone-repository.ts";
import { type GitRun, mustGit, runGit } from "./git.ts";

/**
 * Settings of a restored working copy that are safe to use on this host: names and addresses. All others could name programs, such
 * as filters, or another proxy.
 */
const SAFE_SETTING =
  /^(core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|symlinks)|remote\.[^\n]*\.(url|fetch)|branch\.[^\n]*\.(remote|merge)|user\.(name|email)|extensions\.objectformat)$/i;
const SCRIPT_MS = 60_000;

/**
 * A script whose argument is the working copy's directory. The secret's file contains the settings. `.git` must not be
 * a link.
 */
const HIDE_SETTINGS = [
  "set -e",
  'cd -- "$1"',
  "test -d .git && test ! -L .git && test ! -L .git/config",
  "mv .git/config .git/forage-config",
  "cp /tmp/secret .git/config",
].join("\n");
const SHOW_SETTINGS = ["set -e", 'cd -- "$1"', "mv .git/forage-config .git/config"].join("\n");

/**
 * Updates a repository from a snapshot to the target of the initializer, and keeps its uncommitted changes. The
 * snapshot may be untrusted, so git uses few of its settings.
 */
export async function updateWorkingCopy(
  tools: GitTools,
  target: CloneTarget,
  initializer: GitInitializer,
): Promise<string> {
  const { run, below } = await gitRunOf(tools, target, initializer);
  const settings = await safeSettings(run, below);
  if (settings === undefined || !(await isWorkingCopy(run)))
    return cloneRepository(tools, target, initializer);
  target.note("bringing the prebuild up to date");
  await script(HIDE_SETTINGS, run, below, settings);
  try {
    const stashed = await stash(run);
    const remark = await checkOut(initializer, run);
    if (!stashed) return remark;
    const popped = await runGit(["stash", "pop"], { ...run, proxy: undefined });
    const kept = popped.exitCode === 0 ? "" : "uncommitted changes of the prebuild are kept in git's stash";
    return [remark, kept].filter((it) => it !== "").join("; ");
  } finally {
    await script(SHOW_SETTINGS, run, below, "");
  }
}

/** Returns the safe settings of a working copy as the text of a configuration. Undefined if there is no repository. */
export async function safeSettings(run: GitRun, below: string): Promise<string | undefined> {
  const file = `${below === "" ? "." : below}/.git/config`;
  const args = ["config", "--file", file, "--no-includes", "--null", "--list"];
  const listed = await runGit(args, { ...run, below: "", proxy: undefined });
  if (listed.exitCode !== 0) return undefined;
  const entries = listed.stdout.split("\0").flatMap((entry) => {
    const [key = "", ...value] = entry.split("\n");
    return SAFE_SETTING.test(key) ? [settingText(key, value.join("\n"))] : [];
  });
  return entries.join("");
}

function settingText(key: string, value: string): string {
  const parts = key.split(".");
  const [section = "", name = ""] = [parts[0], parts.at(-1)];
  const subsection = parts.slice(1, -1).join(".");
  const header = subsection === "" ? `[${section}]` : `[${section} ${quoted(subsection)}]`;
  return `${header}\n\t${name} = ${quoted(value.replaceAll("\n", " "))}\n`;
}

function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

async function stash(run: GitRun): Promise<boolean> {
  const identity = ["-c", "user.name=forage", "-c", "user.email=forage@localhost"];
  const offline = { ...run, proxy: undefined };
  const before = await runGit(["rev-parse", "--verify", "--quiet", "refs/stash"], offline);
  await mustGit([...identity, "stash", "push", "--include-untracked"], offline);
  const after = await runGit(["rev-parse", "--verify", "--quiet", "refs/stash"], offline);
  return after.stdout !== before.stdout;
}

async function script(text: string, run: GitRun, below: string, secret: string): Promise<void> {
  const { exitCode, stderr } = await runConfined(
    {
      file: "sh",
      args: ["-c", text, "sh", below === "" ? "." : `./${below}`],
      ...{ directory: run.directory, secret, offline: true },
    },
    { timeoutMs: SCRIPT_MS, signal: AbortSignal.timeout(SCRIPT_MS) },
  );
  if (exitCode !== 0)
    throw new WorkspaceError("FAILED", `the working copy of the prebuild can't be updated: ${stderr}`);
}
