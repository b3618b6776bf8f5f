import { RuntimeError, type RuntimeExec, type RuntimeExecOptions } from "../../agent/src/runtime/runtime.ts";
import { never, type SimLine } from "./sim-calls.ts";
import type { SimContainer } from "./sim-container.ts";
import type { SimHost } from "./sim-host.ts";

const HOOK_MAX_MS = 3_000;
const ANSWER_MAX_MS = 300;

/** Runs a command of a probe or hook in a container. Its first word determines the result. */
export function execInSim(
  host: SimHost,
  line: SimLine,
  id: string,
  { command }: RuntimeExecOptions,
  signal: AbortSignal,
): RuntimeExec {
  const exitCode = answer(host, line, id, command[0] ?? "", signal);
  // The reader of the output receives the failure.
  exitCode.catch(() => undefined);
  return {
    output: (async function* () {
      await exitCode;
      yield* [];
    })(),
    write: async () => undefined,
    endInput: () => undefined,
    resize: () => undefined,
    exitCode,
  };
}

async function answer(
  host: SimHost,
  line: SimLine,
  id: string,
  word: string,
  signal: AbortSignal,
): Promise<number> {
  if (line.cut) return never();
  const { calls, clock } = host;
  const container = host.containers.get(id);
  if (container === undefined) return 1;
  if (word === "post_start") container.postStart = "tried";
  if (word === "pre_stop") container.preStopTried = true;
  if (calls.chance(calls.faults.callFails)) {
    throw new RuntimeError("UNAVAILABLE", "simulated exec", { retryable: true });
  }
  const isHook = word === "post_start" || word === "pre_stop";
  if (word === "post_start") {
    container.postStart = "ran";
    container.postStarts += 1;
    host.witness?.answered(container);
  }
  await clock.sleep(calls.random() * (isHook ? HOOK_MAX_MS : ANSWER_MAX_MS));
  if (word === "post_start" && line.cut) container.excused = true;
  if (line.cut || signal.aborted) return never();
  if (container.state !== "running") return 137;
  if (isHook) return endHook(host, container, word);
  if (calls.chance(calls.faults.probeFails ?? 0)) return 1;
  const passes = {
    startup: clock.monotonicMs() >= container.warmAtMs,
    ready: !container.unready,
    live: !container.broken,
  }[word];
  if (word === "startup" && passes) {
    container.isUp = true;
    host.witness?.answered(container);
  }
  return passes ? 0 : 1;
}

function endHook({ calls, clock, witness }: SimHost, container: SimContainer, word: string): number {
  if (calls.chance(calls.faults.hookFails)) return 1;
  if (word === "pre_stop") return 0;
  container.postStart = "done";
  container.postStartEndedAtMs = clock.monotonicMs();
  witness?.answered(container);
  return 0;
}
