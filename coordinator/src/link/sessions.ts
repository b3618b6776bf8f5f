import type { Log } from "@forage/common/log";
import type { Hello, SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../errors.ts";
import { workloadKey } from "../model/workload.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change, NodeHealth, ObjectEntry, ResourceEntry } from "../state/entries.ts";
import { recordContact } from "../state/record-contact.ts";
import { Signal } from "../state/signal.ts";
import type { Clock } from "../time/clock.ts";
import { heartbeatIntervalMs } from "./heartbeat-interval.ts";
import { defaultLivenessLimits, type LivenessLimits } from "./liveness-limits.ts";
import { NodeLiveness, type NodeLivenessOptions } from "./node-liveness.ts";
import { StallDetector } from "./stall-detector.ts";

/** One live stream of a node. */
export interface Session {
  readonly node: string;
  readonly id: string;
  /** Wakes the session when there may be something to send. */
  readonly wake: Signal;
  readonly requests: SessionRequest[];
  /** Whether the node's pods may have changed since the last evaluation. */
  podsChanged: boolean;
  /** Sends a message at once, once the stream has begun. Returns whether it was accepted. */
  sendNow?: CallContext["sendNow"];
  /** Whether a heartbeat waits for its answer. */
  answerDue: boolean;
  /** Aborts when a newer session of the node begins, or heartbeats are missing. */
  readonly ended: AbortController;
  lastHeartbeatMs: number;
  /** The interval between the agent's heartbeats. It never decreases. */
  heartbeatIntervalMs: number;
  /** Writes the agent's reports. */
  reports?: { readonly unwritten: number };
}

export interface SessionsOptions extends Pick<NodeLivenessOptions, "massLoss" | "hasPodsToReplace"> {
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  /** The heartbeat interval in a small fleet. */
  readonly heartbeatIntervalMs: number;
  /** Called with the length of each pause in which the process was blocked. */
  readonly onStall?: (stalledMs: number) => void;
  /** Called at short intervals. */
  readonly onPulse?: () => void;
  /** The limits of node liveness. Default: `defaultLivenessLimits`. */
  readonly liveness?: LivenessLimits;
}

/** The number of heartbeats that a node may miss before its stream is ended. */
const MISSED_HEARTBEATS = 3;
/** The limit of log and exec requests that wait for one agent. */
const MAX_REQUESTS = 64;

/** Tracks the connected nodes. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #live = new Map<string, Session>();
  readonly #liveness: NodeLiveness;
  readonly #stallDetector: StallDetector;
  #nodes: number;
  #stallCount = 0;
  /** The monotonic time up to which no session can have missed its heartbeats. */
  #nextSweepMs = 0;
  readonly #unsubscribe: () => void;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#nodes = options.state.nodes().length;
    this.#unsubscribe = options.state.subscribe((changes) => this.#wakeFor(changes));
    const { clock, heartbeatIntervalMs } = options;
    this.#liveness = new NodeLiveness({
      ...options,
      limits: options.liveness ?? defaultLivenessLimits(heartbeatIntervalMs),
      checkStall: () => this.checkStall(),
    });
    this.#stallDetector = new StallDetector({
      clock,
      intervalMs: heartbeatIntervalMs / 2,
      onStall: (stalledMs) => this.#recordStall(stalledMs),
      onPulse: () => {
        options.onPulse?.();
        this.#sweep();
      },
    });
  }

  /** The number of times that the process was blocked. */
  get stalls(): number {
    return this.#stallCount;
  }

  /** The number of agents' reports that could not be written at the last attempt. */
  get unwrittenReports(): number {
    return [...this.#live.values()].reduce((sum, { reports }) => sum + (reports?.unwritten ?? 0), 0);
  }

  /** Detects that the process was blocked. Must be called before missing heartbeats are evaluated. */
  checkStall(): void {
    this.#stallDetector.check();
  }

  get size(): number {
    return this.#live.size;
  }

  /** The heartbeat interval for agents that connect now. */
  get heartbeatIntervalMs(): number {
    const { heartbeatIntervalMs: baseMs, liveness } = this.#options;
    return heartbeatIntervalMs(this.#nodes, { baseMs, longestMs: liveness?.longestHeartbeatMs });
  }

  /**
   * Returns a longer interval to send to the session's agent, and records it. Undefined: there is none. The interval of a
   * connection never decreases, because the node would count as silent until the agent has received the new interval.
   */
  longerInterval(session: Session): number | undefined {
    const intervalMs = this.heartbeatIntervalMs;
    if (intervalMs <= session.heartbeatIntervalMs) return undefined;
    session.heartbeatIntervalMs = intervalMs;
    return intervalMs;
  }

  /** Opens the session of a node that has connected. Ends an older one. */
  open(node: string, hello: Hello): Session {
    const { clock, log } = this.#options;
    const older = this.#live.get(node);
    const session: Session = {
      node,
      id: hello.sessionId,
      wake: new Signal(),
      requests: [],
      podsChanged: true,
      answerDue: false,
      ended: new AbortController(),
      lastHeartbeatMs: clock.monotonicMs(),
      heartbeatIntervalMs: this.heartbeatIntervalMs,
    };
    this.#live.set(node, session);
    this.#nextSweepMs = Math.min(this.#nextSweepMs, heartbeatDeadlineMs(session));
    older?.ended.abort(new CoordinatorError("ABORTED", "a newer session of this node took over"));
    log.info({ event: "node-connected", node, session: session.id, replaced: older?.id });
    this.recordContact(session);
    return session;
  }

  /** Reports whether the node has a newer session, so that reports of this one are out of date. */
  isSuperseded(session: Session): boolean {
    const newest = this.#live.get(session.node);
    return newest !== undefined && newest !== session;
  }

  recordContact(session: Session, measured: Pick<NodeHealth, "usage" | "traffic"> = {}): void {
    const { state, clock } = this.#options;
    session.lastHeartbeatMs = clock.monotonicMs();
    if (this.#live.get(session.node) !== session) return;
    this.#liveness.recordContact(session.node, session.heartbeatIntervalMs);
    const health = state.node(session.node)?.health;
    if (health !== undefined) recordContact(health, { ...measured, lastSeenMs: clock.nowMs() });
  }

  close(session: Session): void {
    if (this.#live.get(session.node) !== session) return;
    this.#live.delete(session.node);
    this.#options.log.info({ event: "node-disconnected", node: session.node, session: session.id });
    this.#liveness.left(session.node, this.#isSilent(session));
  }

  /** Wakes every session, so that it evaluates what to send. */
  wakeAll(): void {
    for (const session of this.#live.values()) session.wake.raise();
  }

  /** Requests a stream from the node's agent. @throws CoordinatorError UNAVAILABLE if the node isn't connected. */
  request(node: string, request: SessionRequest): void {
    const session = this.#live.get(node);
    if (session === undefined) throw new CoordinatorError("UNAVAILABLE", `node ${node} is not connected`);
    if (session.requests.length >= MAX_REQUESTS) {
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `node ${node} has ${MAX_REQUESTS} log and exec requests waiting`,
      );
    }
    session.requests.push(request);
    session.wake.raise();
  }

  connected(node: string): boolean {
    return this.#live.has(node);
  }

  stop(): void {
    this.#unsubscribe();
    this.#stallDetector.stop();
    this.#liveness.stop();
  }

  /**
   * Wakes the nodes that the changes affect. Evaluates the changes once, so that the cost doesn't depend on the number of
   * connections.
   */
  #wakeFor(changes: readonly Change[]): void {
    const intervalMs = this.heartbeatIntervalMs;
    for (const change of changes) {
      if (change.type === "node")
        this.#nodes += Number(change.after !== undefined) - Number(change.before !== undefined);
      if (change.type === "node" && (change.after === undefined || change.after.record.revoked))
        this.#forget((change.after ?? change.before)?.name ?? "");
      if (change.type === "object") this.#wakeForObject(change.after ?? change.before);
      if (change.type === "resource") {
        this.#wakeForServices([change.before, change.after]);
        this.#wakeForRole(change.before, change.after);
      }
      if (change.type === "namespace") this.#wakeForPolicy((change.after ?? change.before)?.record.name);
      // An assignment doesn't depend on its pod's status.
      if (change.type !== "pod" || change.before?.record === change.after?.record) continue;
      for (const pod of [change.before, change.after]) {
        if (pod !== undefined) this.#podsChanged(pod.record.node);
      }
    }
    if (this.heartbeatIntervalMs > intervalMs) this.wakeAll();
  }

  /** Wakes the nodes with pods that refer to the object, and the node that has to remove a claim's data. */
  #wakeForObject(object: ObjectEntry | undefined): void {
    if (object === undefined) return;
    const { spec } = object.record;
    if (spec?.$case === "claim") this.#podsChanged(spec.value.node);
    for (const { record } of this.#options.state.podsReferring(object.name)) this.#podsChanged(record.node);
  }

  /** Wakes the nodes with pods of a service's target, because the ports that they publish may have changed. */
  #wakeForServices(entries: readonly (ResourceEntry | undefined)[]): void {
    for (const entry of entries) {
      const spec = entry?.record.resource?.spec;
      if (entry === undefined || spec?.$case !== "service") continue;
      const target = workloadKey(entry.record.namespace, "container_service", spec.value.target);
      for (const { record } of this.#options.state.podsOfWorkload(target)) this.#podsChanged(record.node);
    }
  }

  /** Wakes the nodes with pods of the namespace, because its policy limits what they may mount. */
  #wakeForPolicy(namespace: string | undefined): void {
    if (namespace === undefined) return;
    for (const { record } of this.#options.state.pods(namespace)) this.#podsChanged(record.node);
  }

  /**
   * Wakes the nodes with pods of a workload that a caller with another role has applied, because another policy limits
   * them.
   */
  #wakeForRole(before: ResourceEntry | undefined, after: ResourceEntry | undefined): void {
    if (after === undefined || before?.record.policyRole === after.record.policyRole) return;
    const { namespace, kind, name } = after.record;
    for (const { record } of this.#options.state.podsOfWorkload(workloadKey(namespace, kind, name)))
      this.#podsChanged(record.node);
  }

  #podsChanged(node: string): void {
    const session = this.#live.get(node);
    if (session === undefined) return;
    session.podsChanged = true;
    session.wake.raise();
  }

  #forget(node: string): void {
    this.#liveness.forget(node);
    const why = `node ${node} was removed: join again with a new token`;
    this.#live.get(node)?.ended.abort(new CoordinatorError("PERMISSION_DENIED", why));
  }

  #isSilent(session: Session): boolean {
    return heartbeatDeadlineMs(session) < this.#options.clock.monotonicMs();
  }

  /** Ends streams without heartbeats. Visits sessions only when one of them can have missed its heartbeats. */
  #sweep(): void {
    if (this.#nextSweepMs >= this.#options.clock.monotonicMs()) return;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const session of this.#live.values()) {
      if (this.#isSilent(session)) session.ended.abort(new CoordinatorError("ABORTED", "no heartbeats"));
      else nextMs = Math.min(nextMs, heartbeatDeadlineMs(session));
    }
    this.#nextSweepMs = nextMs;
  }

  /**
   * Restarts the time of missing heartbeats, because messages that agents sent during the pause are still unread in the
   * sockets.
   */
  #recordStall(stalledMs: number): void {
    const { clock, log } = this.#options;
    this.#stallCount++;
    log.warn({ event: "coordinator-stalled", stalledMs: Math.round(stalledMs) });
    const nowMs = clock.monotonicMs();
    for (const session of this.#live.values()) session.lastHeartbeatMs = nowMs;
    this.#liveness.recordStall(stalledMs);
    this.#options.onStall?.(stalledMs);
  }
}

/** Returns the monotonic time after which the session has missed its heartbeats if no further one arrives. */
function heartbeatDeadlineMs({ lastHeartbeatMs, heartbeatIntervalMs }: Session): number {
  return lastHeartbeatMs + MISSED_HEARTBEATS * heartbeatIntervalMs;
}
