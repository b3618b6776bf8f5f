/** Each returns what is wrong with the number, or undefined. */

const MAX_INT32 = 2_147_483_647;
/** A week: nothing waits longer for a container, and timers take at most 24 days. */
const MAX_WAIT_SECONDS = 7 * 86_400;

export function portProblem(port: number): string | undefined {
  return port >= 1 && port <= 65_535 ? undefined : "must be from 1 to 65535";
}

/** Describes what is wrong with a port that may be left out. */
export function optionalPortProblem(port: number): string | undefined {
  return port === 0 ? undefined : portProblem(port);
}

export function rangeProblem(value: number, min: number, max: number): string | undefined {
  return value >= min && value <= max ? undefined : `must be from ${min} to ${max}`;
}

/** Numbers without a limit of their own in Kubernetes, where they are 32 bits wide. */
export function countProblem(value: number): string | undefined {
  return rangeProblem(value, 0, MAX_INT32);
}

/** Seconds that an agent's timers wait. */
export function waitSecondsProblem(value: number): string | undefined {
  return rangeProblem(value, 0, MAX_WAIT_SECONDS);
}

/** Seconds that are counted, not waited for. */
export function secondsProblem(value: bigint): string | undefined {
  return value >= 0n && value <= BigInt(MAX_INT32) ? undefined : `must be from 0 to ${MAX_INT32}`;
}

/** Returns the fault of a user or group id. Undefined: it has none. */
export function idProblem(value: bigint): string | undefined {
  return value >= 0n && value <= BigInt(MAX_INT32) ? undefined : `must be from 0 to ${MAX_INT32}`;
}

/** Permissions of files; 0 stands for the default. */
export function modeProblem(mode: number): string | undefined {
  return mode <= 0o777 ? undefined : "must be a file mode from 0 to 511, which is 0777 in octal";
}
