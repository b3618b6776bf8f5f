import { type Clock, pause } from "../clock.ts";
import type { ObservedContainer } from "./pod.ts";

// 128 and SIGKILL's number: what an end for want of memory looks like.
const KILLED = 137;
const WAIT_MAX_MS = 500;
const LOOK_MS = 50;

/**
 * An ended container as it is now. Of a kill for want of memory the shim tells by another way than of the end, and not always first:
 * where that may be, it is waited for, not for long.
 */
export async function withLateOom(
  found: ObservedContainer,
  look: () => readonly ObservedContainer[],
  clock: Clock,
  signal: AbortSignal,
): Promise<ObservedContainer> {
  let seen = found;
  for (let waitedMs = 0; waitedMs < WAIT_MAX_MS && !signal.aborted; waitedMs += LOOK_MS) {
    if (seen.exitCode !== KILLED || seen.oomKilled === true) break;
    await pause(clock, LOOK_MS, signal);
    seen = look().find((it) => it.id === found.id) ?? seen;
  }
  return seen;
}
