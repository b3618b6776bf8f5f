import { status } from "@grpc/grpc-js";
import type { Logger } from "pino";

/** Receives the end of each call. */
export interface CallObserver {
  readonly log: Logger;
  readonly observe?: (method: string, code: number, seconds: number) => void;
  /** Monotonic, in milliseconds. */
  readonly monotonicMs: () => number;
}

/** Notes the start of a call. Returns what to call at its end, with its status. */
export function begin(method: string, observer: CallObserver): (code: number, error?: unknown) => void {
  const startedMs = observer.monotonicMs();
  return (code, error) => {
    const durationMs = observer.monotonicMs() - startedMs;
    observer.observe?.(method, code, durationMs / 1000);
    if (code === status.INTERNAL)
      observer.log.error({ event: "call-failed", method, err: error }, "call failed");
    else observer.log.debug({ method, code, durationMs }, "call");
  };
}
