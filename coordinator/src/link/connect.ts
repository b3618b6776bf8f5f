import type { ConnectRequest, ConnectResponse, Hello } from "@forage/proto/forage/agent/v1/agent";
import { NodeStatusRecord } from "@forage/proto/forage/store/v1/store";
import type { Logger } from "pino";
import type { Clock } from "../control/clock.ts";
import { CoordinatorError } from "../errors.ts";
import type { GatewayReader } from "../gateway/gateway-reader.ts";
import type { GatewayTable } from "../gateway/gateway-table.ts";
import type { MetricsDesk } from "../metrics/metrics-desk.ts";
import { MetricsOutbox } from "../metrics/metrics-outbox.ts";
import { encodeRecord } from "../model/codec.ts";
import { nodeKey, reportKey } from "../model/keys.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { ServiceTable } from "../service-network/service-table.ts";
import type { State } from "../state/state.ts";
import type { Store } from "../store/index.ts";
import type { Assignments } from "./assignments.ts";
import { forgetClaims } from "./claims-removed.ts";
import { checkNodeReport } from "./node-report.ts";
import { assignmentRevision, Outbox, type Wanted } from "./outbox.ts";
import { PrefetchOutbox } from "./prefetch-outbox.ts";
import type { Prefetches } from "./prefetches.ts";
import { recordHello, recordStatuses } from "./reports.ts";
import type { Session, Sessions } from "./sessions.ts";

export interface ConnectOptions {
  readonly store: Store;
  readonly state: State;
  readonly sessions: Sessions;
  readonly assignments: Assignments;
  readonly services: ServiceTable;
  readonly gateways: GatewayTable;
  readonly metrics: MetricsDesk;
  readonly prefetches: Prefetches;
  readonly clock: Clock;
  readonly log: Logger;
  readonly clusterId: string;
  /** Of the store: grows with each restore. */
  readonly epoch: number;
  /** Of the store: new with each restore, kept by a snapshot that is put back. */
  readonly lineage: string;
  readonly heartbeatIntervalMs: number;
}

/** With what one stream has of its own. */
interface SessionOptions extends ConnectOptions {
  readonly gateway: GatewayReader;
}

/**
 * The agent's stream: what it says is written down as it comes; what it is to run goes out as state, never as a queue. What is
 * the same for all agents comes encoded.
 */
export async function* connect(
  requests: AsyncIterable<ConnectRequest>,
  context: CallContext,
  options: ConnectOptions,
): AsyncGenerator<ConnectResponse | Buffer> {
  const node = nodeOf(context);
  const incoming = requests[Symbol.asyncIterator]();
  const hello = await firstHello(incoming);
  await recordReport(node, hello, options);
  const session = options.sessions.open(node, hello);
  const signal = AbortSignal.any([context.signal, session.ended.signal]);
  const gateway = options.gateways.open(node, () => session.wake.raise());
  const listening = listen(incoming, session, hello, { ...options, gateway: gateway.reader }).catch(
    (error: unknown) => session.ended.abort(error),
  );
  try {
    yield { message: { $case: "welcome", value: welcome(options) } };
    yield* send(node, session, signal, { ...options, gateway: gateway.reader });
    if (session.ended.signal.aborted && !context.signal.aborted) throw session.ended.signal.reason;
  } finally {
    session.ended.abort(new CoordinatorError("ABORTED", "the stream ended"));
    gateway.close();
    options.sessions.close(session);
    void listening;
  }
}

function nodeOf(context: CallContext): string {
  if (context.caller.kind !== "node") throw new CoordinatorError("PERMISSION_DENIED", "only nodes connect");
  return context.caller.nodeId;
}

async function firstHello(incoming: AsyncIterator<ConnectRequest>): Promise<Hello> {
  const first = await incoming.next();
  if (first.done || first.value.message?.$case !== "hello") {
    throw new CoordinatorError("INVALID", "the first message of the stream must be hello");
  }
  return first.value.message.value;
}

function welcome({ clusterId, heartbeatIntervalMs, lineage }: ConnectOptions) {
  return { clusterId, heartbeatIntervalMs, lineage };
}

async function* send(
  node: string,
  session: Session,
  signal: AbortSignal,
  { state, epoch, assignments, services, gateway, metrics, prefetches, clock }: SessionOptions,
): AsyncGenerator<ConnectResponse | Buffer> {
  const outbox = new Outbox({ assignments, nowMs: clock.nowMs });
  const measuring = new MetricsOutbox(metrics, node);
  const prefetching = new PrefetchOutbox(prefetches, node);
  const revision = (): bigint => assignmentRevision(epoch, state.revision);
  const wanted = (): Wanted => {
    return { pods: state.podsOnNode(node), claimRemovals: state.objects.claimRemovals(node) };
  };
  for (const value of outbox.snapshot(wanted(), revision())) yield { message: { $case: "snapshot", value } };
  let told: number | undefined;
  const stopReading = services.read(() => session.wake.raise());
  const wake = (): void => {
    session.podsChanged = true;
    session.wake.raise();
  };
  const stopMeasuring = metrics.read(node, wake);
  const stopPrefetching = prefetches.read(node, wake);
  try {
    while (!signal.aborted) {
      // Services change for all nodes at once, and then nothing else is looked at.
      if (session.podsChanged) {
        session.podsChanged = false;
        for (const value of outbox.delta(wanted(), revision())) yield { message: { $case: "delta", value } };
        const byPodUid = outbox.dueTokens(state.podsOnNode(node));
        if (byPodUid !== undefined) yield { message: { $case: "identityTokens", value: { byPodUid } } };
        const value = measuring.due();
        if (value !== undefined) yield { message: { $case: "podMetrics", value } };
        const ahead = prefetching.due();
        if (ahead !== undefined) yield { message: { $case: "imagePrefetches", value: ahead } };
      }
      const { version, messages } = services.after(told);
      told = version;
      yield* messages;
      yield* gateway.due();
      for (const request of session.requests.splice(0))
        yield { message: { $case: "session", value: request } };
      const cancel = wakeForTokens(outbox, session, clock);
      await session.wake.wait(signal);
      cancel();
    }
  } finally {
    stopReading();
    stopMeasuring();
    stopPrefetching();
  }
}

function wakeForTokens(outbox: Outbox, session: Session, clock: Clock): () => void {
  const dueMs = outbox.nextTokenMs();
  if (dueMs === undefined) return () => {};
  return clock.schedule(Math.max(0, dueMs - clock.nowMs()), () => {
    session.podsChanged = true;
    session.wake.raise();
  });
}

/** Reads until the agent's half-close; a stream that can't be read is a session that has ended. */
async function listen(
  incoming: AsyncIterator<ConnectRequest>,
  session: Session,
  hello: Hello,
  options: SessionOptions,
): Promise<void> {
  await recordHello(session.node, hello.pods, options);
  while (true) {
    const next = await incoming.next();
    if (next.done) break;
    if (session.ended.signal.aborted) return;
    await take(next.value, session, hello, options);
  }
  session.ended.abort(new CoordinatorError("ABORTED", "the agent closed the stream"));
}

async function take(
  request: ConnectRequest,
  session: Session,
  hello: Hello,
  options: SessionOptions,
): Promise<void> {
  const { message } = request;
  switch (message?.$case) {
    case "heartbeat": {
      const { usage } = message.value;
      options.sessions.heard(
        session,
        usage && { cpuMilli: Number(usage.cpuMilli), memoryBytes: Number(usage.memoryBytes) },
      );
      return;
    }
    case "podStatuses":
      options.sessions.heard(session);
      await recordStatuses(session.node, message.value.pods, options);
      return;
    case "nodeReport":
      options.sessions.heard(session);
      await recordReport(session.node, { ...hello, node: message.value }, options);
      return;
    case "claimsRemoved":
      options.sessions.heard(session);
      await forgetClaims(session.node, message.value.claims, options);
      return;
    case "podMetrics":
      options.sessions.heard(session);
      options.metrics.take(session.node, message.value);
      return;
    case "imagePulls":
      options.sessions.heard(session);
      options.prefetches.take(session.node, message.value.images);
      return;
    case "gateway":
      options.sessions.heard(session);
      options.gateway.take(message.value);
      return;
    case "hello":
      throw new CoordinatorError("INVALID", "hello is said once");
    case undefined:
      return;
    default:
      message satisfies never;
  }
}

async function recordReport(
  node: string,
  hello: Hello,
  { store, state, clock }: ConnectOptions,
): Promise<void> {
  checkNodeReport(hello.node);
  const known = state.node(node)?.report;
  const record: NodeStatusRecord = {
    name: node,
    report: hello.node,
    agentVersion: hello.agentVersion,
    bootId: hello.bootId,
    observedAt: toTimestamp(clock.nowMs()),
  };
  const same = known !== undefined && sameReport({ ...known, observedAt: record.observedAt }, record);
  if (same) return;
  const result = await store.txn(
    [{ kind: "exists", key: nodeKey(node) }],
    [{ kind: "put", key: reportKey(node), value: encodeRecord(NodeStatusRecord, record) }],
  );
  await state.reached(result.revision);
  if (!result.succeeded)
    throw new CoordinatorError(
      "PERMISSION_DENIED",
      `node ${node} was forgotten: join again with a new token`,
    );
}

function sameReport(a: NodeStatusRecord, b: NodeStatusRecord): boolean {
  return Buffer.from(NodeStatusRecord.encode(a).finish()).equals(NodeStatusRecord.encode(b).finish());
}
