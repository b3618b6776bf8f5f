import type { Log } from "@forage/common/log";
import type { ConnectRequest, ConnectResponse, Hello } from "@forage/proto/forage/agent/v1/agent";
import type { AuthorityRoll } from "../authority/authority.ts";
import { CoordinatorError } from "../errors.ts";
import type { GatewayReader } from "../gateway/gateway-reader.ts";
import type { GatewayTable } from "../gateway/gateway-table.ts";
import type { MetricsCollector } from "../metrics/metrics-collector.ts";
import type { EventRecorder } from "../model/event.ts";
import type { CallContext } from "../rpc/caller.ts";
import { forEachRequest } from "../rpc/stream.ts";
import type { ServiceTable } from "../service-network/service-table.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { type Store, StoreError } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { assignmentRevision } from "./assignment-revision.ts";
import type { Assignments } from "./assignments.ts";
import { noteCertificateUse } from "./certificate-use.ts";
import type { HistoryGuard } from "./history-guard.ts";
import { checkNodeReport, recordNodeReport } from "./node-report.ts";
import { Outbox, type RequestedState } from "./outbox.ts";
import type { Prefetches } from "./prefetches.ts";
import { ReportQueue } from "./report-queue.ts";
import { answerHeartbeat, dueToSession, sendEarlyRequests, sendRequests } from "./session-requests.ts";
import type { Session, Sessions } from "./sessions.ts";
import type { StartGate } from "./start-gate.ts";

export interface ConnectOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly sessions: Sessions;
  readonly assignments: Assignments;
  readonly services: ServiceTable;
  readonly gateways: GatewayTable;
  readonly metrics: MetricsCollector;
  readonly prefetches: Prefetches;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly clusterId: string;
  /** The store's epoch, which grows with each restore. */
  readonly epoch: number;
  readonly history: HistoryGuard;
  readonly gate: StartGate;
  /** The addresses of all coordinators, which agents receive. Default: there is only one coordinator. */
  readonly coordinators?:
    | { addresses(): readonly string[] | undefined; onAddresses(run: () => void): () => void }
    | undefined;
  /** The replacement of the authority. Default: there is none. */
  readonly authorityRoll?: Pick<AuthorityRoll, "nextPin"> | undefined;
}

/** The options and the state of one stream. */
interface SessionOptions extends ConnectOptions {
  readonly gateway: GatewayReader;
}

interface SendOptions extends SessionOptions {
  /** The addresses of coordinators that the welcome message contained. */
  readonly sentAddresses: readonly string[] | undefined;
}

/** The destinations of received messages. */
interface Received {
  readonly session: Session;
  readonly reports: ReportQueue;
  readonly options: SessionOptions;
}

/** The limit of the wait for the first report to be stored. A disk usually responds within milliseconds. */
const FIRST_REPORT_MS = 1_000;
/** The limit of the wait until tokens are evaluated again, because the wall clock may be set in between. */
const LONGEST_TOKEN_WAIT_MS = 300_000;

/**
 * Serves an agent's stream. Reports are stored as they arrive. Assignments are sent as state, never as a queue. Messages
 * that are the same for all agents are encoded once.
 */
export async function* connect(
  requests: AsyncIterable<ConnectRequest>,
  context: CallContext,
  options: ConnectOptions,
): AsyncGenerator<ConnectResponse | Buffer> {
  const incoming = requests[Symbol.asyncIterator]();
  const { node, session, reports } = await openSession(incoming, context, options);
  const { signal } = session.ended;
  const unlink = endWith(context.signal, session);
  const gateway = options.gateways.open(node, () => session.wake.raise());
  noteCertificateUse(node, context.caller.serial, options).catch((err: unknown) =>
    options.log.warn({ event: "certificate-use-not-recorded", node, err }),
  );
  const sentAddresses = options.coordinators?.addresses();
  const opened: SendOptions = { ...options, gateway: gateway.reader, sentAddresses };
  const receiving = receiveLoop(incoming, context.signal, { session, reports, options: opened }).catch(
    (error: unknown) => session.ended.abort(error),
  );
  try {
    yield { message: { $case: "welcome", value: welcome(session, sentAddresses, options) } };
    session.sendNow = context.sendNow;
    yield* sendEarlyRequests(session, signal, options);
    yield* sendLoop(node, session, signal, opened);
    yield* sendRequests(session, signal, options);
    if (signal.aborted && !context.signal.aborted) throw signal.reason;
  } finally {
    unlink();
    session.ended.abort(new CoordinatorError("ABORTED", "the stream ended"));
    gateway.close();
    options.sessions.close(session);
    void receiving;
  }
}

/**
 * Ends the session when its call is aborted. Returns a function that stops this. A third signal that aborts with either of
 * them would take a kilobyte more for each agent.
 */
function endWith(call: AbortSignal, { ended }: Session): () => void {
  const end = (): void => ended.abort(call.reason);
  call.addEventListener("abort", end, { once: true });
  if (call.aborted) end();
  return () => call.removeEventListener("abort", end);
}

/** Reads the hello message. It is not kept, because the stream lasts for weeks and its first report may have 100 kB. */
async function openSession(
  incoming: AsyncIterator<ConnectRequest>,
  context: CallContext,
  options: ConnectOptions,
): Promise<{ readonly node: string; readonly session: Session; readonly reports: ReportQueue }> {
  const { node, problem } = nodeOf(context);
  const hello = await firstHello(incoming);
  options.history.check(node, { lineage: hello.lineage ?? "", revision: hello.assignmentRevision });
  if (problem !== undefined) throw new CoordinatorError("UNAUTHENTICATED", problem);
  await firstReport(node, hello, options);
  const session = options.sessions.open(node, hello);
  options.gate.check();
  const superseded = () => options.sessions.isSuperseded(session);
  const refused = context.messageRefused;
  const reports = new ReportQueue(options, { node, hello, superseded, refused });
  session.reports = reports;
  return { node, session, reports };
}

/** Returns the calling node, and the reason why it is refused if its certificate is no longer valid. */
function nodeOf({ caller }: CallContext): { readonly node: string; readonly problem?: string } {
  if (caller.type === "node") return { node: caller.nodeId };
  if (caller.type !== "anonymous" || caller.refusedNode === undefined)
    throw new CoordinatorError("PERMISSION_DENIED", "only nodes can connect");
  return { node: caller.refusedNode, problem: caller.problem ?? "the client certificate is not accepted" };
}

async function firstHello(incoming: AsyncIterator<ConnectRequest>): Promise<Hello> {
  const first = await incoming.next();
  if (first.done || first.value.message?.$case !== "hello") {
    throw new CoordinatorError("INVALID", "the first message of the stream must be hello");
  }
  return first.value.message.value;
}

/**
 * Stores the first report, so that placement knows the node's resources before the node is ready. Doesn't wait for long if
 * the disk is slow or full.
 */
async function firstReport(node: string, hello: Hello, options: ConnectOptions): Promise<void> {
  const { clock, state, log } = options;
  checkNodeReport(hello.node);
  if (state.node(node) === undefined)
    throw new CoordinatorError("PERMISSION_DENIED", `node ${node} was removed: join again with a new token`);
  let cancel = (): void => {};
  const late = new Promise<void>((resolve) => {
    cancel = clock.schedule(FIRST_REPORT_MS, resolve);
  });
  const writing = recordNodeReport(node, hello, options).catch((error: unknown) => {
    if (options.history.refusal !== undefined) return;
    if (!(error instanceof StoreError)) throw error;
    log.debug({ event: "first-report-not-written", node, err: error });
  });
  await Promise.race([writing, late]).finally(cancel);
  // The queue writes the report again and reports failures.
  writing.catch(() => undefined);
}

function welcome(
  { heartbeatIntervalMs }: Session,
  addresses: readonly string[] | undefined,
  { clusterId, history }: ConnectOptions,
) {
  return {
    ...{ clusterId, heartbeatIntervalMs, lineage: history.lineage, answersHeartbeats: true },
    coordinators: addresses && { addresses: [...addresses] },
  };
}

/** Sends the node's assignment and everything else. Ends when the signal aborts, or when the store is out of date. */
async function* sendLoop(
  node: string,
  session: Session,
  signal: AbortSignal,
  options: SendOptions,
): AsyncGenerator<ConnectResponse | Buffer> {
  const { state, epoch, history, assignments, services, gateway, metrics, prefetches, clock } = options;
  const outbox = new Outbox({ assignments, clock });
  const measuring = metrics.sessionOf(node);
  const prefetching = prefetches.sessionOf(node);
  const revision = (): bigint => assignmentRevision(epoch, state.revision);
  const markOf = (sent: bigint): string => history.markFor(node, sent);
  const requested = (): RequestedState => {
    return { pods: state.podsOnNode(node), claimRemovals: state.objects.claimRemovals(node) };
  };
  const isOver = (): boolean => signal.aborted || history.refusal !== undefined;
  if (isOver()) return;
  for (const value of outbox.snapshot(requested(), revision()))
    yield { message: { $case: "snapshot", value: { ...value, lineage: markOf(value.revision) } } };
  let servicesSent: number | undefined;
  let renewal: string | undefined;
  let known = textOf(options.sentAddresses);
  const stopLearning = options.coordinators?.onAddresses(() => session.wake.raise());
  const stopReading = services.read(() => session.wake.raise());
  const wake = (): void => {
    session.podsChanged = true;
    session.wake.raise();
  };
  const stopMeasuring = metrics.read(node, wake);
  const stopPrefetching = prefetches.read(node, wake);
  try {
    while (!isOver()) {
      // Services change for all nodes at once. If only they have changed, pods are not evaluated.
      if (session.podsChanged) {
        session.podsChanged = false;
        for (const value of outbox.delta(requested(), revision()))
          yield { message: { $case: "delta", value: { ...value, lineage: markOf(value.revision) } } };
        const byPodUid = outbox.dueTokens(state.podsOnNode(node));
        if (byPodUid !== undefined) yield { message: { $case: "identityTokens", value: { byPodUid } } };
        const value = measuring.due();
        if (value !== undefined) yield { message: { $case: "podMetrics", value } };
        const ahead = prefetching.due();
        if (ahead !== undefined) yield { message: { $case: "imagePrefetches", value: ahead } };
      }
      const due = dueRenewal(node, options);
      if (due !== undefined && due !== renewal) yield { message: { $case: "certificateRenewal", value: {} } };
      renewal = due;
      const addresses = options.coordinators?.addresses() ?? [];
      if (addresses.length > 0 && textOf(addresses) !== known) {
        known = textOf(addresses);
        yield { message: { $case: "coordinators", value: { addresses: [...addresses] } } };
      }
      const intervalMs = options.sessions.longerInterval(session);
      if (intervalMs !== undefined) yield { message: { $case: "heartbeatInterval", value: { intervalMs } } };
      const { version, messages } = services.after(servicesSent);
      servicesSent = version;
      yield* messages;
      yield* gateway.due();
      yield* dueToSession(session, clock);
      const cancel = wakeForTokens(outbox, session, clock);
      await session.wake.wait(signal);
      cancel();
    }
  } finally {
    stopReading();
    stopMeasuring();
    stopPrefetching();
    stopLearning?.();
  }
}

function textOf(addresses: readonly string[] = []): string {
  return addresses.toSorted().join();
}

/**
 * Returns the authority by which the node has to renew its certificate. Undefined: its present certificate is sufficient.
 */
function dueRenewal(node: string, { state, authorityRoll }: ConnectOptions): string | undefined {
  const nextPin = authorityRoll?.nextPin;
  return state.node(node)?.record.certificateAuthority === nextPin ? undefined : nextPin;
}

function wakeForTokens(outbox: Outbox, session: Session, clock: Clock): () => void {
  const delayMs = outbox.tokenDelayMs();
  if (delayMs === undefined) return () => {};
  return clock.schedule(Math.min(delayMs, LONGEST_TOKEN_WAIT_MS), () => {
    session.podsChanged = true;
    session.wake.raise();
  });
}

/**
 * Reads until the agent closes its direction of the stream. Reports are stored in the background, so that no write delays a
 * heartbeat.
 */
async function receiveLoop(
  incoming: AsyncIterator<ConnectRequest>,
  call: AbortSignal,
  { session, reports, options }: Received,
): Promise<void> {
  const { signal } = session.ended;
  reports.start(signal, (error) => session.ended.abort(error));
  await forEachRequest(incoming, (request) => {
    if (!signal.aborted) handle(request, { session, reports, options });
  });
  if (signal.aborted && !call.aborted) return;
  session.ended.abort(new CoordinatorError("ABORTED", "the agent closed the stream"));
  await reports.flush();
}

function handle({ message }: ConnectRequest, { session, reports, options }: Received): void {
  switch (message?.$case) {
    case "heartbeat": {
      const { usage, traffic, answerRequested } = message.value;
      if (answerRequested) answerHeartbeat(session, options.clock);
      options.sessions.recordContact(session, {
        ...(usage && {
          usage: { cpuMilli: Number(usage.cpuMilli), memoryBytes: Number(usage.memoryBytes) },
        }),
        ...(traffic && { traffic: { requests: Number(traffic.requests), errors: Number(traffic.errors) } }),
      });
      return;
    }
    case "podStatuses":
      options.sessions.recordContact(session);
      reports.putStatuses(message.value.pods);
      return;
    case "nodeReport":
      checkNodeReport(message.value);
      options.sessions.recordContact(session);
      reports.putReport(message.value);
      return;
    case "claimsRemoved":
      options.sessions.recordContact(session);
      reports.putClaimsRemoved(message.value.claims);
      return;
    case "podMetrics":
      options.sessions.recordContact(session);
      options.metrics.receive(session.node, message.value);
      return;
    case "imagePulls":
      options.sessions.recordContact(session);
      options.prefetches.receive(session.node, message.value.images);
      return;
    case "gateway":
      options.sessions.recordContact(session);
      options.gateway.receive(message.value);
      return;
    case "hello":
      throw new CoordinatorError("INVALID", "hello may be sent only once");
    case undefined:
      return;
    default:
      message satisfies never;
  }
}
