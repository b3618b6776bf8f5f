import { backOffMs } from "@forage/common/back-off";
import { NODE_RENEW_AT, renewAtMs, renewalState } from "@forage/identity/renewal";
import type { AgentServiceClient, ClaimRef, Hello, Welcome } from "@forage/proto/forage/agent/v1/agent";
import { pause } from "../clock.ts";
import { openAgentClient, toLinkError } from "./client.ts";
import { Connection } from "./connection.ts";
import { encodeStatus } from "./encode-status.ts";
import { enroll, freshToken } from "./enroll.ts";
import { LinkError } from "./link-error.ts";
import type { LinkOptions } from "./link-options.ts";
import type { LinkState } from "./link-state.ts";
import type { NodeIdentity } from "./node-identity.ts";
import { notRenewed } from "./not-renewed.ts";
import { renewIdentity } from "./renew.ts";
import { type StreamOptions, serveStream } from "./serve-stream.ts";
import { StreamWait } from "./stream-wait.ts";

export type { LinkEvents, LinkOptions } from "./link-options.ts";

// Full jitter, because a fleet that lost its coordinator must not reconnect at the same moment.
const RECONNECT_BASE_MS = 500;
const RECONNECT_CAP_MS = 10_000;
// Errors that only an operator can fix are retried too, at long intervals.
const REFUSED_CAP_MS = 60_000;
const RENEW_AGAIN_MS = 60_000;
// Spreads the renewals of a fleet that is asked to renew at the same moment.
const RENEW_ASKED_SPREAD_MS = 10_000;
// Limits the load if a coordinator issues certificates that are due for renewal at once.
const RENEW_LEAST_MS = 10_000;
const STAYS_MAX = 3;
const CHECK_INTERVAL_MS = 30_000;
// If there are other coordinators, trying the next one early keeps the interruption below the grace period of the host.
const CONNECT_LIMIT_MS = 3_000;
// Hosts that had to switch, or have learned of a new coordinator, draw a coordinator again. Otherwise the coordinators
// that are upgraded first in a rolling upgrade would stay without hosts. By then the upgrade is over, and open sessions
// end only once.
const REDRAW_LEAST_MS = 120_000;
const REDRAW_SPREAD_MS = 240_000;

/**
 * Keeps the agent connected: joins if necessary, connects, renews its certificate, and reconnects after every failure.
 */
export class CoordinatorLink {
  readonly #options: LinkOptions;
  #state: LinkState;
  /** The coordinator's reason for the last rejection. */
  #refusal: string | undefined;
  #connection: Connection | undefined;
  /** The number of consecutive failures after which the same coordinator was kept. */
  #stays = 0;
  /** Whether the last coordinator answered no heartbeats, so that PINGs have to detect a cut connection. */
  #needsPings = false;
  /** The monotonic time of the next random choice of a coordinator. Undefined if none is due. */
  #redrawAtMs: number | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#state = { kind: "connecting", sinceMs: options.clock.nowMs() };
  }

  get state(): LinkState {
    return this.#state;
  }

  /** The client of the current connection. Undefined if there is none. */
  get client(): AgentServiceClient | undefined {
    return this.#connection?.client;
  }

  /** Reports a change of the node before the next heartbeat. */
  nodeChanged(): void {
    const { node } = this.#options;
    void this.#connection?.send({ $case: "nodeReport", value: node.report() });
  }

  /**
   * Reports that a claim was removed. Does nothing without a connection, because the coordinator repeats its order on
   * the next one.
   */
  claimRemoved(claim: ClaimRef): void {
    void this.#connection?.send({ $case: "claimsRemoved", value: { claims: [claim] } });
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    for (let failures = 0; !signal.aborted; ) {
      let capMs = RECONNECT_CAP_MS;
      try {
        const identity = await this.#identity(signal);
        await this.#stayConnected(identity, signal, () => {
          failures = 0;
        });
      } catch (error) {
        if (signal.aborted) return;
        const failure = toLinkError(error);
        if (!failure.retryable) capMs = REFUSED_CAP_MS;
        this.#tryNextAddress(failure);
        this.#refusal = failure.code === "REFUSED" ? failure.message : undefined;
        this.#become({ kind: "failed", code: failure.code, message: failure.message });
      }
      failures += 1;
      await pause(clock, random() * backOffMs(failures + 1, { baseMs: RECONNECT_BASE_MS, capMs }), signal);
    }
  }

  /**
   * Switches to another coordinator if that may help. A coordinator that rejects a host may have a wrong clock or an
   * old copy of the store, which the others don't have.
   */
  #tryNextAddress({ isOfLeader, code }: LinkError): void {
    const { coordinators } = this.#options;
    if (coordinators === undefined || code === "NO_IDENTITY" || code === "DISK") return;
    // A new leader is elected within seconds, unless only this coordinator can't reach it.
    if (isOfLeader && this.#stays++ < STAYS_MAX) return;
    coordinators.moveOn();
    this.#stays = 0;
    this.#redrawLater();
  }

  #learn(addresses: readonly string[]): void {
    if (this.#options.coordinators?.learn(addresses) === true) this.#redrawLater();
  }

  /** Returns the longest delay until a new time for a draw is noticed. */
  #checkIntervalMs(): number {
    return this.#options.coordinators === undefined ? Number.POSITIVE_INFINITY : CHECK_INTERVAL_MS;
  }

  #redrawLater(): void {
    const { clock, random } = this.#options;
    this.#redrawAtMs = clock.monotonicMs() + REDRAW_LEAST_MS + random() * REDRAW_SPREAD_MS;
  }

  /** Returns the stored identity if it is still valid. Otherwise enrolls with an unused token. */
  async #identity(signal: AbortSignal): Promise<NodeIdentity> {
    const { enroll: options, clock } = this.#options;
    const known = await options.files.load();
    const expired = known !== undefined && clock.nowMs() >= known.pair.notAfterMs;
    if (known !== undefined && !expired && this.#refusal === undefined) return known;
    const token = await freshToken(options);
    if (token !== undefined) {
      this.#become({ kind: "joining" });
      return enroll(options, token, signal);
    }
    const how = "make a join token on the coordinator and put it into the token file";
    if (known === undefined) {
      throw new LinkError("NO_IDENTITY", `this host has not joined a cluster: ${how}`);
    }
    const early = clock.nowMs() < known.pair.notBeforeMs || /NOT_YET_VALID/.test(this.#refusal ?? "");
    if (!expired && !early) return known;
    return this.#renewUnusable(known, how, signal);
  }

  /**
   * Renews an unusable certificate. The coordinator renews an expired one for some time after its end, and may renew
   * one that is not valid yet.
   */
  async #renewUnusable(known: NodeIdentity, how: string, signal: AbortSignal): Promise<NodeIdentity> {
    const { enroll: options, events, clock, openClient = openAgentClient } = this.#options;
    const client = openClient(options.address, known, { pings: true });
    try {
      const renewed = await renewIdentity(client, options.files, signal);
      events.renewed(renewed.pair.notAfterMs);
      return renewed;
    } catch (error) {
      const failure = toLinkError(error);
      if (failure.code !== "REFUSED") throw failure;
      throw notRenewed(known, clock.nowMs(), failure, how);
    } finally {
      client.close();
    }
  }

  /**
   * Keeps one connection after another, opening the next before it closes the last. Ends only by an error or the
   * signal.
   */
  async #stayConnected(first: NodeIdentity, signal: AbortSignal, onConnected: () => void): Promise<void> {
    let identity = first;
    let current = await this.#connect(identity, signal);
    let leastMs = 0;
    onConnected();
    try {
      while (!signal.aborted) {
        const renewed = await this.#until(current, identity, leastMs, signal);
        if (renewed === undefined) return;
        const next =
          renewed === "redraw" ? await this.#redraw(identity, signal) : await this.#connect(renewed, signal);
        if (next === undefined) continue;
        current.connection.close();
        await current.ended.catch(() => undefined);
        current = next;
        if (renewed === "redraw") continue;
        identity = renewed;
        leastMs = RENEW_LEAST_MS;
      }
    } finally {
      current.connection.close();
      await current.ended.catch(() => undefined);
      this.#connection = undefined;
    }
  }

  /**
   * Connects to another coordinator while the current connection serves. Returns undefined if the current one is kept.
   */
  async #redraw(identity: NodeIdentity, signal: AbortSignal): Promise<Serving | undefined> {
    this.#redrawAtMs = undefined;
    const goBack = this.#options.coordinators?.redraw();
    if (goBack === undefined) return undefined;
    try {
      return await this.#connect(identity, signal);
    } catch {
      goBack();
      // The attempt has cleared the statuses that waited for the current stream.
      const { pods, outbox } = this.#options;
      for (const status of pods.statuses()) outbox.put(status);
      this.#redrawLater();
      return undefined;
    }
  }

  /**
   * Serves the stream until one of these happens: a new certificate exists (returned), another coordinator has to be
   * drawn, the stream breaks (rejects), or the signal aborts.
   */
  async #until(
    current: Serving,
    identity: NodeIdentity,
    leastMs: number,
    signal: AbortSignal,
  ): Promise<NodeIdentity | "redraw" | undefined> {
    const { clock, random, enroll: options, events } = this.#options;
    const draw = random();
    let waitMs = Math.max(leastMs, renewAtMs(identity.pair, draw, NODE_RENEW_AT) - clock.nowMs());
    let isAsked = false;
    const wait = new StreamWait(current.ended);
    while (!signal.aborted) {
      const endsMs = clock.monotonicMs() + Math.max(0, waitMs);
      const restMs = Math.min(Math.max(0, waitMs), this.#checkIntervalMs());
      await wait.pause(clock, restMs, isAsked ? [signal] : [signal, current.asked]);
      if (signal.aborted) return undefined;
      const nowMs = clock.monotonicMs();
      if (nowMs >= (this.#redrawAtMs ?? Number.POSITIVE_INFINITY)) return "redraw";
      if (nowMs < endsMs && (isAsked || !current.asked.aborted)) {
        waitMs = endsMs - nowMs;
        continue;
      }
      if (!isAsked && current.asked.aborted) {
        isAsked = true;
        waitMs = Math.max(leastMs, random() * RENEW_ASKED_SPREAD_MS);
        continue;
      }
      if (!isAsked && renewalState(identity.pair, draw, clock.nowMs(), NODE_RENEW_AT) === "fresh") {
        waitMs = renewAtMs(identity.pair, draw, NODE_RENEW_AT) - clock.nowMs();
        continue;
      }
      try {
        const renewed = await renewIdentity(current.connection.client, options.files, signal);
        events.renewed(renewed.pair.notAfterMs);
        return renewed;
      } catch (error) {
        if (signal.aborted) return undefined;
        events.renewalFailed(toLinkError(error));
        waitMs = RENEW_AGAIN_MS * (0.5 + random());
      }
    }
    return undefined;
  }

  async #connect(identity: NodeIdentity, signal: AbortSignal): Promise<Serving> {
    if (this.#state.kind !== "connected") this.#become({ kind: "connecting" });
    this.#options.outbox.clear();
    const connection = await this.#open(identity, signal);
    try {
      this.#assertOurs(connection.welcome);
    } catch (error) {
      connection.close();
      throw error;
    }
    this.#refusal = undefined;
    this.#stays = 0;
    this.#connection = connection;
    this.#learn(connection.welcome.coordinators?.addresses ?? []);
    this.#become({ kind: "connected", certificateEndsMs: identity.pair.notAfterMs });
    const asked = new AbortController();
    const ended = serveStream(
      connection,
      this.#streamOptions(() => asked.abort()),
    );
    // The race with the renewal handles the error later.
    ended.catch(() => undefined);
    return { connection, ended, asked: asked.signal };
  }

  async #open(identity: NodeIdentity, signal: AbortSignal): Promise<Connection> {
    const { enroll: options, clock, openClient = openAgentClient } = this.#options;
    const isAlone = (this.#options.coordinators?.all.length ?? 1) === 1;
    const connectLimitMs = isAlone ? undefined : CONNECT_LIMIT_MS;
    while (true) {
      const pings = this.#needsPings;
      const client = openClient(options.address, identity, { pings });
      const connection = await Connection.open(client, this.#hello(), { clock, signal, connectLimitMs });
      this.#needsPings = !connection.welcome.answersHeartbeats;
      if (pings || !this.#needsPings) return connection;
      // A channel can't begin to send PINGs later. This happens only at the first connection to an earlier version.
      connection.close();
    }
  }

  #streamOptions(renewSoon: () => void): StreamOptions {
    const { clock, journal, pods, reader, outbox, node, services, meter, prefetcher, ...rest } =
      this.#options;
    const { gateway, removeClaims, openSession, assignmentsHealth } = rest;
    return {
      clock,
      journal,
      pods,
      reader,
      outbox,
      node,
      services,
      gateway,
      meter,
      prefetcher,
      removeClaims,
      renewSoon,
      learnCoordinators: (addresses) => this.#learn(addresses),
      openSession,
      assignmentsHealth,
    };
  }

  #hello(): Hello {
    const { agentVersion, bootId, sessionId, journal, node, pods } = this.#options;
    return {
      agentVersion,
      bootId,
      sessionId,
      clusterId: journal.clusterId,
      assignmentRevision: journal.resumeRevision,
      lineage: journal.lineage,
      node: node.report(),
      pods: pods.statuses().map(encodeStatus),
    };
  }

  #assertOurs({ clusterId }: Welcome): void {
    const ours = this.#options.journal.clusterId;
    if (ours === "" || ours === clusterId) return;
    throw new LinkError(
      "NOT_OURS",
      `this host's pods belong to cluster ${ours}, but the coordinator belongs to ${clusterId}; ` +
        "they keep running; to move the host, drain it in its old cluster first",
    );
  }

  #become(state: Omit<LinkState, "sinceMs">): void {
    const same = this.#state.kind === state.kind && this.#state.message === state.message;
    const sinceMs = same ? this.#state.sinceMs : this.#options.clock.nowMs();
    this.#state = { ...state, sinceMs };
    if (!same) this.#options.events.changed(this.#state);
  }
}

interface Serving {
  readonly connection: Connection;
  /** Rejects with a LinkError if the stream breaks, and resolves if it was closed. */
  readonly ended: Promise<void>;
  /** Aborts when the coordinator requests a renewal of the certificate. */
  readonly asked: AbortSignal;
}
