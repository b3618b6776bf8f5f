import { type ConfinedResult, runConfined, SECRET_FILE } from "../confined.ts";
import { WorkspaceError } from "../workspace-error.ts";

export interface GitRun {
  /** The working directory: a directory of the content, by its real path. */
  readonly directory: string;
  /** The path below `directory` in which git starts. Default: `directory` itself. */
  readonly below?: string;
  /** A line of git's credential store. */
  readonly secret?: string | undefined;
  /** The proxy for all connections. Undefined: the command has no network. */
  readonly proxy?: string | undefined;
  readonly signal: AbortSignal;
}

// Allows for a large repository over a slow network. The order's deadline limits whole attempts.
const TIMEOUT_MS = 1_800_000;

/**
 * Settings that override those of the working copy, which may be untrusted. With them, nothing in the working copy
 * makes git run a program or use another protocol.
 */
const SETTINGS: readonly (readonly [string, string])[] = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.pager", "cat"],
  ["core.askPass", ""],
  ["core.sshCommand", "false"],
  ["core.gitProxy", ""],
  ["credential.helper", ""],
  ["protocol.allow", "never"],
  ["protocol.http.allow", "always"],
  ["protocol.https.allow", "always"],
  ["safe.directory", "*"],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["advice.detachedHead", "false"],
  ["submodule.recurse", "false"],
  ["transfer.credentialsInUrl", "die"],
  ["http.lowSpeedLimit", "1"],
  ["http.lowSpeedTime", "120"],
];

/** Runs git as the unprivileged user. Resolves with any exit code. */
export function runGit(args: readonly string[], run: GitRun): Promise<ConfinedResult> {
  const { directory, below, secret, proxy, signal } = run;
  const settings = [
    ...SETTINGS,
    ...(secret === undefined ? [] : [["credential.helper", `store --file=${SECRET_FILE}`] as const]),
    ...(proxy === undefined ? [] : [["http.proxy", proxy] as const]),
  ];
  return runConfined(
    {
      file: "git",
      args: [...(below === undefined || below === "" ? [] : ["-C", below]), ...args],
      directory,
      ...(secret !== undefined && { secret }),
      offline: proxy === undefined,
      env: {
        GIT_TERMINAL_PROMPT: "0",
        GIT_CONFIG_NOSYSTEM: "1",
        GIT_CONFIG_GLOBAL: "/dev/null",
        GIT_CONFIG_COUNT: String(settings.length),
        ...Object.fromEntries(
          settings.flatMap(([key, value], index) => [
            [`GIT_CONFIG_KEY_${index}`, key],
            [`GIT_CONFIG_VALUE_${index}`, value],
          ]),
        ),
      },
    },
    { timeoutMs: TIMEOUT_MS, signal },
  );
}

/** Like `runGit`, but throws for any exit code other than 0. Returns the output. */
export async function mustGit(args: readonly string[], run: GitRun): Promise<string> {
  const result = await runGit(args, run);
  if (result.exitCode === 0) return result.stdout;
  throw gitError(args[0] ?? "", result);
}

/** Failures that a retry with the same input would repeat. */
const FINAL =
  /Authentication failed|could not read (Username|Password)|terminal prompts disabled|returned error: (401|403|404|410)|repository .* not found|transport '.*' not allowed|not our ref|couldn't find remote ref/i;

export function gitError(command: string, { exitCode, stderr }: ConfinedResult): WorkspaceError {
  if (/No space left on device|Disk quota exceeded/i.test(stderr))
    return new WorkspaceError("NO_ROOM", `git ${command}: ${stderr}`);
  if (exitCode === undefined)
    return new WorkspaceError("HOST_FAILED", `git ${command} was killed by a signal`);
  const message = `git ${command}: ${stderr || `failed with exit code ${exitCode}`}`;
  return new WorkspaceError(FINAL.test(stderr) ? "FAILED" : "UNAVAILABLE", message);
}
