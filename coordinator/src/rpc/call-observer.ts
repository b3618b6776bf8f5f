import type { Log } from "@forage/common/log";
import { status } from "@grpc/grpc-js";

/** Is called at the end of each call. */
export interface CallObserver {
  readonly log: Log;
  readonly observe?: (method: string, code: number, seconds: number) => void;
  /** Returns the monotonic time in milliseconds. */
  readonly monotonicMs: () => number;
}

/** Records the start of a call. Returns a function to call at its end, with its status. */
export function begin(method: string, observer: CallObserver): (code: number, error?: unknown) => void {
  const startedMs = observer.monotonicMs();
  return (code, error) => {
    const durationMs = observer.monotonicMs() - startedMs;
    observer.observe?.(method, code, durationMs / 1000);
    if (code === status.INTERNAL) observer.log.error({ event: "call-failed", method, err: error });
    else observer.log.debug({ event: "call", method, code, durationMs });
  };
}
