import type { Clock } from "../../clock.ts";
import { type PullState, RuntimeError } from "../runtime.ts";
import { classifyError } from "./classify-error.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";
import { PullProgress } from "./pull-progress.ts";

export interface PullOptions {
  readonly cli: Pick<NerdctlCli, "spawn">;
  readonly clock: Clock;
  /** The time without progress after which the pull is cancelled. */
  readonly stallMs: number;
  /** The environment with `DOCKER_CONFIG` for the login to use. */
  readonly env?: Readonly<Record<string, string>>;
  readonly onProgress?: (state: PullState) => void;
}

// Unpacking layers shows no progress; several GB on a slow disk take minutes.
const UNPACK_STALL_MS = 15 * 60_000;
const KILL_PATIENCE_MS = 5_000;
const STDERR_MAX_LENGTH = 64 * 1024;

/** Pulls one image, given by its full name. There is no limit on the total time while the pull makes progress. */
export async function pullImage(options: PullOptions, reference: string, signal: AbortSignal): Promise<void> {
  const { cli, clock, stallMs, env = {}, onProgress } = options;
  if (signal.aborted)
    throw new RuntimeError("ABORTED", `pull of ${reference}: cancelled`, { retryable: true });
  const child = cli.spawn(["pull", "--", reference], { env });
  const progress = new PullProgress();
  let outcome: "stalled" | "aborted" | undefined;
  const { promise: stuck, resolve: leaveBehind } = Promise.withResolvers<undefined>();
  let cancelLeaving: (() => void) | undefined;
  const end = (why: "stalled" | "aborted") => {
    outcome ??= why;
    child.kill("SIGKILL");
    // A process that is stuck in the kernel does not end even after SIGKILL.
    cancelLeaving ??= clock.schedule(KILL_PATIENCE_MS, () => leaveBehind(undefined));
  };
  const abort = () => end("aborted");
  signal.addEventListener("abort", abort, { once: true });
  const arm = () => clock.schedule(progress.downloading ? stallMs : UNPACK_STALL_MS, () => end("stalled"));
  let disarm = arm();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    if (!progress.push(text)) return;
    disarm();
    disarm = arm();
    onProgress?.(progress.state);
  });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = `${complaint}${text}`.slice(-STDERR_MAX_LENGTH);
  });
  const result = await Promise.race([child.ended, stuck]);
  disarm();
  cancelLeaving?.();
  signal.removeEventListener("abort", abort);
  if (result?.exitCode === 0) return;
  if (outcome === "aborted")
    throw new RuntimeError("ABORTED", `pull of ${reference}: cancelled`, { retryable: true });
  if (outcome === "stalled")
    throw new RuntimeError("TIMEOUT", `pull of ${reference}: no progress for ${stallMs} ms`, {
      retryable: true,
    });
  if (result?.exitCode !== undefined) throw classifyError("pull", complaint);
  throw new RuntimeError(
    "UNAVAILABLE",
    `nerdctl pull: ${result?.signal ?? result?.error?.code ?? "could not be started"}`,
    { retryable: true },
  );
}
