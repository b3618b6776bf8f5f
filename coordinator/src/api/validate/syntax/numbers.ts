/** The functions return what is wrong with the number, or undefined. */

const MAX_INT32 = 2_147_483_647;
/** The longest wait in seconds: a week. Timers are limited to 24 days. */
const MAX_WAIT_SECONDS = 7 * 86_400;

export function portProblem(port: number): string | undefined {
  return port >= 1 && port <= 65_535 ? undefined : "must be from 1 to 65535";
}

/** Validates an optional port. */
export function optionalPortProblem(port: number): string | undefined {
  return port === 0 ? undefined : portProblem(port);
}

export function rangeProblem(value: number, min: number, max: number): string | undefined {
  return value >= min && value <= max ? undefined : `must be from ${min} to ${max}`;
}

/** Validates counts that have no limit in Kubernetes other than their 32 bits. */
export function countProblem(value: number): string | undefined {
  return rangeProblem(value, 0, MAX_INT32);
}

/** Validates a wait of an agent's timers, in seconds. */
export function waitSecondsProblem(value: number): string | undefined {
  return rangeProblem(value, 0, MAX_WAIT_SECONDS);
}

/** Validates a number of seconds that no timer waits for. */
export function secondsProblem(value: bigint): string | undefined {
  return value >= 0n && value <= BigInt(MAX_INT32) ? undefined : `must be from 0 to ${MAX_INT32}`;
}

/** Validates a user or group id. */
export function idProblem(value: bigint): string | undefined {
  return value >= 0n && value <= BigInt(MAX_INT32) ? undefined : `must be from 0 to ${MAX_INT32}`;
}

/** Validates the permissions of files. 0 stands for the default. */
export function modeProblem(mode: number): string | undefined {
  return mode <= 0o777 ? undefined : "must be a file mode from 0 to 511, which is 0777 in octal";
}
