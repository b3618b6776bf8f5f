export type ProbeKind = "startup" | "liveness" | "readiness";

export type ProbeHandler =
  | {
      readonly type: "http";
      readonly scheme: "HTTP" | "HTTPS";
      readonly port: number;
      /** The path with its query. Empty means `/`. */
      readonly path: string;
      readonly headers: readonly { readonly name: string; readonly value: string }[];
    }
  | { readonly type: "tcp"; readonly port: number }
  | { readonly type: "exec"; readonly command: readonly string[] }
  /** `service` is that of grpc.health.v1. Empty means the whole server. */
  | { readonly type: "grpc"; readonly port: number; readonly service: string };

export interface ProbeSpec {
  readonly handler: ProbeHandler;
  /** The delay after the container's start. */
  readonly initialDelayMs: number;
  /** The time from the start of one probe to the start of the next. */
  readonly periodMs: number;
  readonly timeoutMs: number;
  /** The number of consecutive answers that change the verdict. */
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

/** The probes of one container. */
export type ContainerProbes = { readonly [Kind in ProbeKind]?: ProbeSpec };

/** The five numbers as on the wire: seconds and counts, 0 for the default. */
export interface ProbeNumbers {
  readonly initialDelaySeconds: number;
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

export const PROBE_KINDS: readonly ProbeKind[] = ["startup", "liveness", "readiness"];

// Kubernetes' defaults.
const PERIOD_SECONDS = 10;
const TIMEOUT_SECONDS = 1;
const SUCCESS_THRESHOLD = 1;
const FAILURE_THRESHOLD = 3;

/**
 * Fills in Kubernetes' defaults. @throws RangeError that names an invalid number. Only readiness allows a
 * success_threshold above 1.
 */
export function probeSpec(kind: ProbeKind, handler: ProbeHandler, numbers: ProbeNumbers): ProbeSpec {
  const successThreshold = numbers.successThreshold || SUCCESS_THRESHOLD;
  if (kind !== "readiness" && successThreshold !== 1) {
    throw new RangeError(`${kind} probe: success_threshold must be 1, not ${successThreshold}`);
  }
  return {
    handler: checkHandler(kind, handler),
    initialDelayMs: numbers.initialDelaySeconds * 1000,
    periodMs: (numbers.periodSeconds || PERIOD_SECONDS) * 1000,
    timeoutMs: (numbers.timeoutSeconds || TIMEOUT_SECONDS) * 1000,
    successThreshold,
    failureThreshold: numbers.failureThreshold || FAILURE_THRESHOLD,
  };
}

function checkHandler(kind: ProbeKind, handler: ProbeHandler): ProbeHandler {
  if (handler.type === "exec") {
    if (handler.command.length === 0) throw new RangeError(`${kind} probe: exec: the command is empty`);
  } else if (!(handler.port >= 1 && handler.port <= 65_535)) {
    throw new RangeError(`${kind} probe: ${handler.type}: ${handler.port} is not a port`);
  }
  return handler;
}
