/**
 * The agent's record of a pod's execution on this host, without its specification. Times are milliseconds since the
 * epoch.
 */
export interface PodState {
  /** The last known network namespace, which no longer exists after a reboot. */
  readonly sandbox?: SandboxState;
  /** Whether ports were allocated. An empty list may mean that the pod has none. */
  readonly portsAllocated?: boolean;
  readonly hostPorts: readonly HostPortState[];
  /** States by container name. */
  readonly containers: Readonly<Record<string, ContainerState>>;
  /** Set when no container of the pod will be started again. */
  readonly outcome?: "SUCCEEDED" | "FAILED";
  /** Whether the pod was removed from the host completely. */
  readonly removed?: boolean;
  readonly startedAtMs?: number;
  readonly readyAtMs?: number;
  /** The role of the containers that have started in the current sandbox after the init containers. */
  readonly begun?: "sidecars" | "main";
  /** The reason why the host ended the pod for good. */
  readonly failure?: ReasonState;
}

export interface SandboxState {
  readonly namespacePath: string;
  readonly address: string;
  /** The IPv6 address of a pod with both families. */
  readonly address6?: string;
}

export interface HostPortState {
  readonly container: string;
  readonly containerPort: number;
  readonly protocol: "TCP" | "UDP" | "SCTP";
  readonly hostPort: number;
}

export interface ContainerState {
  /** The number of the newest start. It is part of the container's name, so it is never reused. */
  readonly attempt: number;
  readonly restartCount: number;
  /** The time of the next start and the delay that led to it, while backing off. */
  readonly retryAtMs?: number;
  readonly backoffMs?: number;
  /** "started" from a start until its end was recorded, then "ended". Absent before the first start. */
  readonly phase?: "started" | "ended";
  readonly containerId?: string;
  readonly startedAtMs?: number;
  /** The number of ends since the last long run. */
  readonly crashes?: number;
  readonly lastTermination?: TerminationState;
  /** The earlier terminations, newest first. */
  readonly earlierTerminations?: readonly TerminationState[];
  /** The progress of the post_start hook in the current run. */
  readonly postStart?: "begun" | "done";
  /** The last probe verdicts of the current run. */
  readonly health?: { readonly started: boolean; readonly ready: boolean };
  /** The time and cause of the current run's stop. No cause if the run is not at fault. */
  readonly stop?: { readonly sinceMs: number; readonly cause?: ReasonState };
}

export interface ReasonState {
  readonly reason: string;
  readonly message: string;
}

export interface TerminationState {
  readonly exitCode: number;
  /** The number of the signal that ended the run, else 0. */
  readonly signal: number;
  /** The reason, such as "Completed", "Error" or "OOMKilled". */
  readonly reason: string;
  /** The last lines of output. */
  readonly message: string;
  readonly startedAtMs?: number;
  readonly finishedAtMs: number;
}

/** Encodes a state for the disk as JSON, so that an operator can read it. */
export function encodePodState(state: PodState): Buffer {
  return Buffer.from(JSON.stringify(state));
}

/** Decodes a state. Throws an error that names an invalid field. Drops unknown fields. */
export function decodePodState(bytes: Uint8Array): PodState {
  const root = object(JSON.parse(Buffer.from(bytes).toString()), "state");
  const containers = Object.entries(object(root.containers, "containers"));
  return {
    ...optional(root, "sandbox", sandbox),
    ...optional(root, "portsAllocated", yesOrNo),
    hostPorts: array(root.hostPorts, "hostPorts").map(hostPort),
    containers: Object.fromEntries(containers.map(([name, value]) => [name, container(value, name)])),
    ...optional(root, "outcome", oneOf(["SUCCEEDED", "FAILED"])),
    ...optional(root, "removed", yesOrNo),
    ...optional(root, "startedAtMs", count),
    ...optional(root, "readyAtMs", count),
    ...optional(root, "begun", oneOf(["sidecars", "main"])),
    ...optional(root, "failure", reason),
  };
}

function sandbox(value: unknown, name: string): SandboxState {
  const from = object(value, name);
  return {
    namespacePath: text(from.namespacePath, "namespacePath"),
    address: text(from.address, "address"),
    ...optional(from, "address6", text),
  };
}

function hostPort(value: unknown): HostPortState {
  const from = object(value, "hostPorts");
  return {
    container: text(from.container, "container"),
    containerPort: port(from.containerPort, "containerPort"),
    protocol: oneOf(["TCP", "UDP", "SCTP"])(from.protocol, "protocol"),
    hostPort: port(from.hostPort, "hostPort"),
  };
}

function container(value: unknown, name: string): ContainerState {
  const from = object(value, name);
  return {
    attempt: count(from.attempt, "attempt"),
    restartCount: count(from.restartCount, "restartCount"),
    ...optional(from, "retryAtMs", count),
    ...optional(from, "backoffMs", count),
    ...optional(from, "phase", oneOf(["started", "ended"])),
    ...optional(from, "containerId", text),
    ...optional(from, "startedAtMs", count),
    ...optional(from, "crashes", count),
    ...optional(from, "lastTermination", termination),
    ...optional(from, "earlierTerminations", (list, what) =>
      array(list, what).map((it) => termination(it, what)),
    ),
    ...optional(from, "postStart", oneOf(["begun", "done"])),
    ...optional(from, "health", health),
    ...optional(from, "stop", stop),
  };
}

function health(value: unknown, name: string): { started: boolean; ready: boolean } {
  const from = object(value, name);
  return { started: yesOrNo(from.started, "started"), ready: yesOrNo(from.ready, "ready") };
}

function stop(value: unknown, name: string): NonNullable<ContainerState["stop"]> {
  const from = object(value, name);
  return { sinceMs: count(from.sinceMs, "sinceMs"), ...optional(from, "cause", reason) };
}

function reason(value: unknown, name: string): ReasonState {
  const from = object(value, name);
  return { reason: text(from.reason, "reason"), message: text(from.message, "message") };
}

function termination(value: unknown, name: string): TerminationState {
  const from = object(value, name);
  return {
    exitCode: integer(from.exitCode, "exitCode"),
    signal: count(from.signal, "signal"),
    reason: text(from.reason, "reason"),
    message: text(from.message, "message"),
    ...optional(from, "startedAtMs", count),
    finishedAtMs: count(from.finishedAtMs, "finishedAtMs"),
  };
}

function optional<Key extends string, Value>(
  from: Record<string, unknown>,
  key: Key,
  read: (value: unknown, name: string) => Value,
): { [key in Key]?: Value } {
  const made: { [key in Key]?: Value } = {};
  if (from[key] !== undefined) made[key] = read(from[key], key);
  return made;
}

function object(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(name, "an object");
  return { ...value };
}

function array(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong(name, "a list");
  return value;
}

function text(value: unknown, name: string): string {
  if (typeof value !== "string") throw wrong(name, "text");
  return value;
}

function yesOrNo(value: unknown, name: string): boolean {
  if (typeof value !== "boolean") throw wrong(name, "true or false");
  return value;
}

function integer(value: unknown, name: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) throw wrong(name, "a whole number");
  return value;
}

function count(value: unknown, name: string): number {
  const read = typeof value === "number" && Number.isFinite(value) ? value : Number.NaN;
  if (!(read >= 0)) throw wrong(name, "a number of at least 0");
  return read;
}

function port(value: unknown, name: string): number {
  const read = integer(value, name);
  if (read < 1 || read > 65_535) throw wrong(name, "a port");
  return read;
}

function oneOf<const Value extends string>(allowed: readonly Value[]) {
  return (value: unknown, name: string): Value => {
    const found = allowed.find((candidate) => candidate === value);
    if (found === undefined) throw wrong(name, `one of ${allowed.join(", ")}`);
    return found;
  };
}

function wrong(name: string, expected: string): Error {
  return new Error(`${name} is not ${expected}`);
}
