import type { Clock } from "../clock.ts";
import { type ExecInContainer, runCommandProbe } from "./exec-probe.ts";
import { askGrpcHealth } from "./grpc-probe.ts";
import { askHttp } from "./http-probe.ts";
import type { ProbeAnswer } from "./probe-answer.ts";
import type { ProbeHandler } from "./probe-spec.ts";
import { connectTcp } from "./tcp-probe.ts";

/** The target of a container's probes. */
export interface ProbeTarget {
  /** The pod's address, which is reachable from the host. */
  readonly address: string;
  readonly exec: ExecInContainer;
}

/** Runs one probe. Never rejects; an abort gives `unknown`. Takes hardly longer than `timeoutMs`. */
export type RunProbe = (
  handler: ProbeHandler,
  target: ProbeTarget,
  timeoutMs: number,
  signal: AbortSignal,
) => Promise<ProbeAnswer>;

/** Returns the function that runs real probes. */
export function probeOver(clock: Clock): RunProbe {
  return (handler, target, timeoutMs, signal) => {
    const limit = { clock, timeoutMs, signal };
    switch (handler.type) {
      case "http":
        return askHttp(handler, target.address, limit);
      case "tcp":
        return connectTcp(target.address, handler.port, limit);
      case "grpc":
        return askGrpcHealth(target.address, handler, limit);
      case "exec":
        return runCommandProbe(handler.command, target.exec, limit);
      default:
        return handler satisfies never;
    }
  };
}
