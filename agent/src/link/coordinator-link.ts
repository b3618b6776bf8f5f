import { backOffMs } from "@forage/common/back-off";
import { NODE_RENEW_AT, renewAtMs, renewalState } from "@forage/identity/renewal";
import type {
  AgentServiceClient,
  ClaimRef,
  Hello,
  SessionRequest,
  Welcome,
} from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import { pause } from "../clock.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { ImagePrefetcher } from "../images/image-prefetcher.ts";
import type { Journal } from "../journal/journal.ts";
import type { PodMeter } from "../metrics/pod-meter.ts";
import type { ServiceNetwork } from "../service-network.ts";
import type { AssignedPods } from "./assigned-pods.ts";
import type { AssignmentReader } from "./assignment-reader.ts";
import { openAgentClient, toLinkError } from "./client.ts";
import { Connection } from "./connection.ts";
import type { CoordinatorAddresses } from "./coordinator-addresses.ts";
import { encodeStatus } from "./encode-status.ts";
import { type EnrollOptions, enroll, freshToken } from "./enroll.ts";
import { LinkError } from "./link-error.ts";
import type { LinkState } from "./link-state.ts";
import type { NodeIdentity } from "./node-identity.ts";
import type { NodeSource } from "./node-source.ts";
import { notRenewed } from "./not-renewed.ts";
import { renewIdentity } from "./renew.ts";
import { type StreamOptions, serveStream } from "./serve-stream.ts";
import type { StatusOutbox } from "./status-outbox.ts";
import { StreamWait } from "./stream-wait.ts";

export interface LinkOptions {
  readonly enroll: EnrollOptions;
  readonly agentVersion: string;
  readonly bootId: string;
  /** New with every start of the agent. */
  readonly sessionId: string;
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly journal: Journal;
  readonly pods: AssignedPods;
  readonly reader: AssignmentReader;
  readonly outbox: StatusOutbox;
  readonly node: NodeSource;
  /** Measures pods when asked to. */
  readonly meter: Pick<PodMeter, "ask" | "ended">;
  /** Pulls images ahead of pods when asked to. */
  readonly prefetcher: Pick<ImagePrefetcher, "ask" | "ended">;
  readonly services: ServiceNetwork;
  readonly gateway: Gateway;
  readonly removeClaims: (claims: readonly ClaimRef[]) => void;
  readonly openSession: (request: SessionRequest, connection: Connection) => void;
  /** Called with the reason why assignments can't be written to disk; undefined after a successful write. */
  readonly assignmentsHealth: (problem: string | undefined) => void;
  readonly events: LinkEvents;
  /** The coordinators of the cluster, of which `enroll` has the address of the current one. Default: there is one. */
  readonly coordinators?: Pick<CoordinatorAddresses, "all" | "learn" | "moveOn" | "redraw">;
  /** Opens the channel that a connection uses. Default: mutual TLS to the coordinator's address. */
  readonly openClient?: typeof openAgentClient;
}

export interface LinkEvents {
  changed(state: LinkState): void;
  renewed(endsMs: number): void;
  renewalFailed(error: LinkError): void;
}

// Full jitter: a fleet that lost its coordinator must not come back in one instant.
const RECONNECT_BASE_MS = 500;
const RECONNECT_CAP_MS = 10_000;
// Errors that only an operator can mend are retried too, at long intervals.
const REFUSED_CAP_MS = 60_000;
const RENEW_AGAIN_MS = 60_000;
// A fleet that is asked to renew must not come in one instant.
const RENEW_ASKED_SPREAD_MS = 10_000;
// A coordinator that hands out certificates which are due at once must not keep us both busy.
const RENEW_LEAST_MS = 10_000;
const STAYS_MAX = 3;
const LOOK_MS = 30_000;
// Where there are others, one that does not answer costs less than the time in which its absence would count against the host.
const CONNECT_LIMIT_MS = 3_000;
// Hosts that had to move, or have learnt of a new coordinator, draw one again: a rolling upgrade leaves the first ones to be upgraded
// empty. By then it is over, and open sessions end only once.
const REDRAW_LEAST_MS = 120_000;
const REDRAW_SPREAD_MS = 240_000;

/** Keeps the agent connected: joins if it must, connects, renews its certificate, and comes back after every failure. */
export class CoordinatorLink {
  readonly #options: LinkOptions;
  #state: LinkState;
  /** The coordinator's reason for the last refusal. */
  #refusal: string | undefined;
  #connection: Connection | undefined;
  /** Failures in a row after which it stayed where it was. */
  #stays = 0;
  /** By the monotonic clock; undefined: it stays where it is. */
  #redrawAtMs: number | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#state = { kind: "connecting", sinceMs: options.clock.nowMs() };
  }

  get state(): LinkState {
    return this.#state;
  }

  /** The client of the present connection. Undefined: there is none. */
  get client(): AgentServiceClient | undefined {
    return this.#connection?.client;
  }

  /** Reports a change of the node before the next heartbeat. */
  nodeChanged(): void {
    const { node } = this.#options;
    void this.#connection?.send({ $case: "nodeReport", value: node.report() });
  }

  /**
   * Reports that a claim was removed. Does nothing without a connection, because the coordinator repeats its order on the next
   * one.
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
        this.#moveOn(failure);
        this.#refusal = failure.code === "REFUSED" ? failure.message : undefined;
        this.#become({ kind: "failed", code: failure.code, message: failure.message });
      }
      failures += 1;
      await pause(clock, random() * backOffMs(failures + 1, { baseMs: RECONNECT_BASE_MS, capMs }), signal);
    }
  }

  /** A coordinator that refuses a host may have a wrong clock or an old copy of the store, which the others have not. */
  #moveOn({ isOfLeader, code }: LinkError): void {
    const { coordinators } = this.#options;
    if (coordinators === undefined || code === "NO_IDENTITY" || code === "DISK") return;
    // A new leader is there after some seconds, unless only this coordinator can't reach it.
    if (isOfLeader && this.#stays++ < STAYS_MAX) return;
    coordinators.moveOn();
    this.#stays = 0;
    this.#redrawLater();
  }

  #learn(addresses: readonly string[]): void {
    if (this.#options.coordinators?.learn(addresses) === true) this.#redrawLater();
  }

  /** A new time to draw a coordinator again is noticed after so long. */
  #lookMs(): number {
    return this.#options.coordinators === undefined ? Number.POSITIVE_INFINITY : LOOK_MS;
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

  /** The coordinator renews an expired certificate for some time after its end, and may renew one that is not valid yet. */
  async #renewUnusable(known: NodeIdentity, how: string, signal: AbortSignal): Promise<NodeIdentity> {
    const { enroll: options, events, clock, openClient = openAgentClient } = this.#options;
    const client = openClient(options.address, known);
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

  /** Keeps one connection after another, opening the next before it closes the last. Ends only by an error or the signal. */
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

  /** Connects to another coordinator while the present one serves. Undefined: it stays where it is. */
  async #redraw(identity: NodeIdentity, signal: AbortSignal): Promise<Serving | undefined> {
    this.#redrawAtMs = undefined;
    const goBack = this.#options.coordinators?.redraw();
    if (goBack === undefined) return undefined;
    try {
      return await this.#connect(identity, signal);
    } catch {
      goBack();
      // The attempt has cleared the statuses that waited for the present stream.
      const { pods, outbox } = this.#options;
      for (const status of pods.statuses()) outbox.put(status);
      this.#redrawLater();
      return undefined;
    }
  }

  /**
   * Serves the stream until a new certificate is there (given back), another coordinator must be drawn, the stream breaks (rejects) or
   * the signal aborts.
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
      const restMs = Math.min(Math.max(0, waitMs), this.#lookMs());
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
    const { enroll: options, outbox, clock, openClient = openAgentClient } = this.#options;
    if (this.#state.kind !== "connected") this.#become({ kind: "connecting" });
    outbox.clear();
    const client = openClient(options.address, identity);
    const isAlone = (this.#options.coordinators?.all.length ?? 1) === 1;
    const connectLimitMs = isAlone ? undefined : CONNECT_LIMIT_MS;
    const connection = await Connection.open(client, this.#hello(), { clock, signal, connectLimitMs });
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
  /** Rejects with a LinkError when the stream breaks, resolves when it was closed. */
  readonly ended: Promise<void>;
  /** Aborted when the coordinator requests a renewal of the certificate. */
  readonly asked: AbortSignal;
}
