import type { Log } from "@forage/common/log";
import type { Hello, SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../errors.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change, NodeHealth, ObjectEntry, ResourceEntry } from "../state/entries.ts";
import { Signal } from "../state/signal.ts";
import type { Clock } from "../time/clock.ts";
import { heartbeatIntervalMs } from "./heartbeat-interval.ts";
import {
  defaultLivenessLimits,
  type LivenessLimits,
  NodeLiveness,
  type NodeLivenessOptions,
} from "./node-liveness.ts";
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
  /** Aborted when a newer session of the node takes over or the node falls silent. */
  readonly ended: AbortController;
  lastHeartbeatMs: number;
  /** The interval between its agent's heartbeats. It only grows. */
  heartbeatIntervalMs: number;
  /** Writes what its agent reports. */
  reports?: { readonly unwritten: number };
}

export interface SessionsOptions extends Pick<NodeLivenessOptions, "massLoss" | "hasPodsToReplace"> {
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  /** The interval in a small fleet. */
  readonly heartbeatIntervalMs: number;
  /** Called once for each hold-up of the process, with its length. */
  readonly onHoldUp?: (heldMs: number) => void;
  /** Called at short intervals. */
  readonly onPulse?: () => void;
  /** Default: as without a setting. */
  readonly liveness?: LivenessLimits;
}

/** Heartbeats a node may miss before its stream counts as dead: one may be late, two are a sign, three are an answer. */
const MISSED_HEARTBEATS = 3;
/** Log and exec requests waiting for one agent. */
const MAX_REQUESTS = 64;

/** Tracks the connected nodes. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #live = new Map<string, Session>();
  readonly #liveness: NodeLiveness;
  readonly #holdUps: StallDetector;
  #nodes: number;
  #holdUpCount = 0;
  readonly #unsubscribe: () => void;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#nodes = options.state.nodes().length;
    this.#unsubscribe = options.state.subscribe((changes) => this.#wakeFor(changes));
    const { clock, heartbeatIntervalMs } = options;
    this.#liveness = new NodeLiveness({
      ...options,
      limits: options.liveness ?? defaultLivenessLimits(heartbeatIntervalMs),
      checkHoldUp: () => this.checkHoldUp(),
    });
    this.#holdUps = new StallDetector({
      clock,
      intervalMs: heartbeatIntervalMs / 2,
      onHoldUp: (heldMs) => this.#heldUp(heldMs),
      onPulse: () => {
        options.onPulse?.();
        this.#sweep();
      },
    });
  }

  /** The number of stalls of the process. */
  get holdUps(): number {
    return this.#holdUpCount;
  }

  /** Reports of agents that could not be written at the last try. */
  get unwrittenReports(): number {
    return [...this.#live.values()].reduce((sum, { reports }) => sum + (reports?.unwritten ?? 0), 0);
  }

  /** Call it before nodes are judged by their silence. */
  checkHoldUp(): void {
    this.#holdUps.check();
  }

  get size(): number {
    return this.#live.size;
  }

  /** The interval between the heartbeats of each agent that connects now. */
  get heartbeatIntervalMs(): number {
    const { heartbeatIntervalMs: baseMs, liveness } = this.#options;
    return heartbeatIntervalMs(this.#nodes, { baseMs, longestMs: liveness?.longestHeartbeatMs });
  }

  /**
   * Returns a longer interval that has to be sent to the session's agent, and records it. Undefined: there is none. An interval
   * never gets shorter on a connection, because the node would count as silent until the agent follows it.
   */
  longerInterval(session: Session): number | undefined {
    const intervalMs = this.heartbeatIntervalMs;
    if (intervalMs <= session.heartbeatIntervalMs) return undefined;
    session.heartbeatIntervalMs = intervalMs;
    return intervalMs;
  }

  /** The newest session of a node wins; an older one is ended. */
  open(node: string, hello: Hello): Session {
    const { clock, log } = this.#options;
    const older = this.#live.get(node);
    const session: Session = {
      node,
      id: hello.sessionId,
      wake: new Signal(),
      requests: [],
      podsChanged: true,
      ended: new AbortController(),
      lastHeartbeatMs: clock.monotonicMs(),
      heartbeatIntervalMs: this.heartbeatIntervalMs,
    };
    this.#live.set(node, session);
    older?.ended.abort(new CoordinatorError("ABORTED", "a newer session of this node took over"));
    log.info({ event: "node-connected", node, session: session.id, replaced: older?.id });
    this.recordContact(session);
    return session;
  }

  /** Reports whether the node has a newer session, so that this one's reports are out of date. */
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
    if (health === undefined) return;
    state.setNodeHealth(session.node, { ...health, lastSeenMs: clock.nowMs(), ...measured }, false);
  }

  close(session: Session): void {
    if (this.#live.get(session.node) !== session) return;
    this.#live.delete(session.node);
    this.#options.log.info({ event: "node-disconnected", node: session.node, session: session.id });
    this.#liveness.left(session.node, this.#isSilent(session));
  }

  /** Lets every session evaluate what it has to send. */
  wakeAll(): void {
    for (const session of this.#live.values()) session.wake.raise();
  }

  /** Asks the node's agent to open a stream. UNAVAILABLE when it isn't connected. */
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
    this.#holdUps.stop();
    this.#liveness.stop();
  }

  /** Evaluates the changes once for all nodes. The cost depends on the changes, and not on the number of connections. */
  #wakeFor(changes: readonly Change[]): void {
    const intervalMs = this.heartbeatIntervalMs;
    for (const change of changes) {
      if (change.kind === "node")
        this.#nodes += Number(change.after !== undefined) - Number(change.before !== undefined);
      if (change.kind === "node" && (change.after === undefined || change.after.record.revoked))
        this.#forget((change.after ?? change.before)?.name ?? "");
      if (change.kind === "object") this.#wakeForObject(change.after ?? change.before);
      if (change.kind === "resource") {
        this.#wakeForServices([change.before, change.after]);
        this.#wakeForRole(change.before, change.after);
      }
      if (change.kind === "namespace") this.#wakeForPolicy((change.after ?? change.before)?.record.name);
      if (change.kind !== "pod") continue;
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

  /** Wakes the nodes with pods of a workload that a caller of another role has applied: another policy limits them. */
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

  #isSilent({ lastHeartbeatMs, heartbeatIntervalMs }: Session): boolean {
    return lastHeartbeatMs < this.#options.clock.monotonicMs() - MISSED_HEARTBEATS * heartbeatIntervalMs;
  }

  /** Ends streams whose agents have sent nothing for so long that they are gone or cut off. */
  #sweep(): void {
    for (const session of this.#live.values()) {
      if (this.#isSilent(session)) session.ended.abort(new CoordinatorError("ABORTED", "no heartbeats"));
    }
  }

  /** Messages that agents sent during the pause are unread in the sockets, so no agent was silent. */
  #heldUp(heldMs: number): void {
    const { clock, log } = this.#options;
    this.#holdUpCount++;
    log.warn({ event: "coordinator-held-up", heldMs: Math.round(heldMs) });
    const nowMs = clock.monotonicMs();
    for (const session of this.#live.values()) session.lastHeartbeatMs = nowMs;
    this.#liveness.heldUp(heldMs);
    this.#options.onHoldUp?.(heldMs);
  }
}
