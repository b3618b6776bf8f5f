import type { Hello, SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import type { Logger } from "pino";
import type { Clock } from "../control/clock.ts";
import { CoordinatorError } from "../errors.ts";
import type { Change, ObjectEntry } from "../state/entries.ts";
import { Signal } from "../state/signal.ts";
import type { State } from "../state/state.ts";

/** One live stream of a node. */
export interface Session {
  readonly node: string;
  readonly id: string;
  /** Something to send may be waiting. */
  readonly wake: Signal;
  readonly requests: SessionRequest[];
  /** What its pods are to be may have changed since it was last looked at. */
  podsChanged: boolean;
  /** Aborted when a newer session of the node takes over or the node falls silent. */
  readonly ended: AbortController;
  lastHeardMs: number;
}

export interface SessionsOptions {
  readonly state: State;
  readonly clock: Clock;
  readonly log: Logger;
  readonly heartbeatIntervalMs: number;
}

/** Heartbeats a node may miss before its stream counts as dead: one may be late, two are a sign, three are an answer. */
const missedHeartbeats = 3;
/** Log and exec requests waiting for one agent. */
const maxRequests = 64;
/** A node that went away is believed in this long, so that a dropped connection or our own restart harms nobody. */
const graceMs = 8_000;

/** Which nodes are connected; feeds their health into the view. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #live = new Map<string, Session>();
  readonly #lapses = new Map<string, () => void>();
  #sweep: () => void = () => {};
  #stopped = false;
  readonly #unsubscribe: () => void;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#unsubscribe = options.state.subscribe((changes) => this.#wakeFor(changes));
    for (const { name } of options.state.nodes()) {
      this.#setHealth(name, true, "");
      this.#lapseLater(name, "has not connected since the coordinator started");
    }
    this.#sweepLater();
  }

  get size(): number {
    return this.#live.size;
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
      lastHeardMs: clock.monotonicMs(),
    };
    this.#live.set(node, session);
    this.#lapses.get(node)?.();
    this.#lapses.delete(node);
    older?.ended.abort(new CoordinatorError("ABORTED", "a newer session of this node took over"));
    log.info({ node, session: session.id, replaced: older?.id }, "node connected");
    this.#setHealth(node, true, "");
    return session;
  }

  heard(session: Session, usage?: { readonly cpuMilli: number; readonly memoryBytes: number }): void {
    session.lastHeardMs = this.#options.clock.monotonicMs();
    const { state, clock } = this.#options;
    const health = { ready: true, message: "", lastSeenMs: clock.nowMs(), ...(usage && { usage }) };
    if (this.#live.get(session.node) === session) state.setNodeHealth(session.node, health, false);
  }

  close(session: Session): void {
    if (this.#live.get(session.node) !== session) return;
    this.#live.delete(session.node);
    this.#options.log.info({ node: session.node, session: session.id }, "node disconnected");
    this.#lapseLater(session.node, "its connection was lost");
  }

  /** Asks the node's agent to open a stream. UNAVAILABLE when it isn't connected. */
  request(node: string, request: SessionRequest): void {
    const session = this.#live.get(node);
    if (session === undefined) throw new CoordinatorError("UNAVAILABLE", `node ${node} is not connected`);
    if (session.requests.length >= maxRequests) {
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `node ${node} has ${maxRequests} log and exec requests waiting`,
      );
    }
    session.requests.push(request);
    session.wake.raise();
  }

  connected(node: string): boolean {
    return this.#live.has(node);
  }

  stop(): void {
    this.#stopped = true;
    this.#unsubscribe();
    this.#sweep();
    for (const cancel of this.#lapses.values()) cancel();
    this.#lapses.clear();
  }

  /** One look at each change for all nodes together: a change costs what it touches, not what is connected. */
  #wakeFor(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "object") this.#wakeForObject(change.after ?? change.before);
      if (change.kind !== "pod") continue;
      for (const pod of [change.before, change.after]) {
        if (pod !== undefined) this.#podsChanged(pod.record.node);
      }
    }
  }

  /** Nodes with pods that refer to it, and the one that is to remove a claim's data. */
  #wakeForObject(object: ObjectEntry | undefined): void {
    if (object === undefined) return;
    const { spec } = object.record;
    if (spec?.$case === "claim") this.#podsChanged(spec.value.node);
    for (const { record } of this.#options.state.podsReferring(object.name)) this.#podsChanged(record.node);
  }

  #podsChanged(node: string): void {
    const session = this.#live.get(node);
    if (session === undefined) return;
    session.podsChanged = true;
    session.wake.raise();
  }

  #lapseLater(node: string, message: string): void {
    if (this.#stopped) return;
    this.#lapses.get(node)?.();
    const cancel = this.#options.clock.schedule(graceMs, () => {
      this.#lapses.delete(node);
      this.#options.log.warn({ node, message }, "node is not ready");
      this.#setHealth(node, false, message);
    });
    this.#lapses.set(node, cancel);
  }

  #setHealth(node: string, ready: boolean, message: string): void {
    const { state, clock } = this.#options;
    const before = state.node(node)?.health;
    const lastSeenMs = ready && this.#live.has(node) ? clock.nowMs() : before?.lastSeenMs;
    state.setNodeHealth(node, { ...before, ready, message, lastSeenMs }, before?.ready !== ready);
  }

  #sweepLater(): void {
    const { clock, heartbeatIntervalMs } = this.#options;
    this.#sweep = clock.schedule(heartbeatIntervalMs, () => {
      const silentSinceMs = clock.monotonicMs() - missedHeartbeats * heartbeatIntervalMs;
      for (const session of this.#live.values()) {
        if (session.lastHeardMs < silentSinceMs)
          session.ended.abort(new CoordinatorError("ABORTED", "no heartbeats"));
      }
      this.#sweepLater();
    });
  }
}
