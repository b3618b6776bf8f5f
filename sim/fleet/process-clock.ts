import type { VirtualClock } from "@forage/common/virtual-clock";
import type { Clock } from "../../coordinator/src/time/clock.ts";
import { ProcessGate } from "./process-gate.ts";

/**
 * Returns the clock of one process. It has its own wall clock, its timers wait while the process is paused, and they
 * never fire once it is dead.
 */
export function clockOf(
  time: VirtualClock,
  life: { readonly aborted: boolean },
  skewMs: number,
  gate = new ProcessGate(time),
): Clock {
  const monotonicMs = (): number => time.nowMs() - gate.stoppedMs;
  return {
    nowMs: () => time.nowMs() + skewMs + gate.wallJumpMs,
    monotonicMs,
    schedule: (delayMs, run) => {
      const dueMs = monotonicMs() + Math.max(0, Math.round(delayMs));
      let cancel = (): void => {};
      let cancelled = false;
      const fire = (): void =>
        gate.timer(() => {
          if (life.aborted || cancelled) return;
          // While the machine was suspended, the time of its timers did not advance either.
          const restMs = dueMs - monotonicMs();
          if (restMs > 0) cancel = time.schedule(restMs, fire);
          else run();
        });
      cancel = time.schedule(Math.round(delayMs), fire);
      return () => {
        cancelled = true;
        cancel();
      };
    },
  };
}
