import { isDeepStrictEqual } from "node:util";
import type {
  ClaimRef,
  GatewayStatus,
  IdentityTokens,
  SessionRequest,
} from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import { pause } from "../clock.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { ImagePrefetcher } from "../images/image-prefetcher.ts";
import type { Journal } from "../journal/journal.ts";
import type { PodMeter } from "../metrics/pod-meter.ts";
import type { ServiceNetwork } from "../service-network.ts";
import type { AssignedPods } from "./assigned-pods.ts";
import { AssignmentIntake } from "./assignment-intake.ts";
import type { AssignmentReader } from "./assignment-reader.ts";
import type { Connection } from "./connection.ts";
import { encodeStatus } from "./encode-status.ts";
import { type AssignmentMessage, assignmentParts } from "./gather-parts.ts";
import { LinkError } from "./link-error.ts";
import type { NodeSource } from "./node-source.ts";
import type { StatusOutbox } from "./status-outbox.ts";

export interface StreamOptions {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly pods: AssignedPods;
  readonly reader: AssignmentReader;
  readonly outbox: StatusOutbox;
  readonly node: NodeSource;
  readonly services: ServiceNetwork;
  readonly gateway: Gateway;
  readonly meter: Pick<PodMeter, "ask" | "ended">;
  readonly prefetcher: Pick<ImagePrefetcher, "ask" | "ended">;
  readonly removeClaims: (claims: readonly ClaimRef[]) => void;
  /** Called when the coordinator requests a renewal of the node's certificate. */
  readonly renewSoon: () => void;
  /** Called with the addresses of the cluster's coordinators. */
  readonly learnCoordinators: (addresses: readonly string[]) => void;
  readonly openSession: (request: SessionRequest, connection: Connection) => void;
  /** Called with the reason why assignments can't be written to disk; undefined after a successful write. */
  readonly assignmentsHealth: (problem: string | undefined) => void;
}

// Pods that start together change within a few milliseconds of each other, so one message covers all of them.
const COALESCE_MS = 10;
// More frequent heartbeats would add traffic without benefit.
const HEARTBEAT_MIN_MS = 500;
const HEARTBEAT_DEFAULT_MS = 3_000;

/** Serves a welcomed connection until it breaks (rejects with a LinkError) or is closed. */
export async function serveStream(connection: Connection, options: StreamOptions): Promise<void> {
  const over = new AbortController();
  const servicesEnded = options.services.restart();
  options.gateway.restart();
  const stopReporting = reportGateway(connection, options.gateway);
  const sending = Promise.all([
    sendStatuses(connection, options, over.signal),
    beat(connection, options, over.signal),
  ]);
  const { clock, journal, pods, reader, outbox, assignmentsHealth: onHealth } = options;
  const onTaken = (): void => void heartbeat(connection, options).catch(() => connection.close());
  const intake = new AssignmentIntake({ clock, journal, pods, reader, outbox, onHealth, onTaken });
  // A message that can't be encoded ends this connection, but not the agent.
  sending.catch(() => connection.close());
  try {
    const parts = assignmentParts();
    for await (const message of connection.messages()) {
      switch (message.$case) {
        case "snapshot":
        case "delta": {
          const whole = parts.add(message);
          if (whole !== undefined) await receiveAssignment(whole, connection, intake, options);
          break;
        }
        case "session":
          options.openSession(message.value, connection);
          break;
        case "certificateRenewal":
          options.renewSoon();
          break;
        case "heartbeatInterval":
          connection.heartbeatIntervalMs = message.value.intervalMs;
          break;
        case "heartbeatAnswer":
          connection.heartbeatAtMs = options.clock.monotonicMs() + message.value.nextMs;
          break;
        case "coordinators":
          options.learnCoordinators(message.value.addresses);
          break;
        case "identityTokens":
          receiveTokens(message.value, intake, options);
          break;
        case "podMetrics":
          options.meter.ask(message.value, connection);
          break;
        case "imagePrefetches":
          options.prefetcher.ask(message.value, connection);
          break;
        case "services":
          options.services.apply(message.value);
          break;
        case "gateway":
          options.gateway.apply(message.value);
          break;
        case "welcome":
          throw new LinkError("PROTOCOL", "the coordinator sent a second welcome");
        default:
          message satisfies never;
      }
    }
  } finally {
    over.abort();
    intake.close();
    servicesEnded();
    stopReporting();
    options.meter.ended(connection);
    options.prefetcher.ended(connection);
    connection.close();
    await sending;
  }
}

/** Sends the gateway's status now and after each change, which are rare. Returns a function that stops it. */
function reportGateway(connection: Connection, gateway: Gateway): () => void {
  const report = (value: GatewayStatus): void => void connection.send({ $case: "gateway", value });
  const status = gateway.status();
  if (status !== undefined) report(status);
  return gateway.subscribe(report);
}

async function receiveAssignment(
  message: AssignmentMessage,
  connection: Connection,
  intake: AssignmentIntake,
  options: StreamOptions,
): Promise<void> {
  const { clusterId, lineage } = connection.welcome;
  if (message.$case === "snapshot")
    await intake.receiveSnapshot(message.value, clusterId, message.value.lineage ?? lineage);
  else await intake.receiveDelta(message.value, message.value.lineage ?? lineage);
  // The pods that may still use the claims have been ordered to end before.
  options.removeClaims(message.value.claimRemovals);
}

/** Stores the tokens and passes them to the pods. Pods that are no longer assigned are skipped. */
function receiveTokens(
  tokens: IdentityTokens,
  intake: AssignmentIntake,
  { pods, reader }: StreamOptions,
): void {
  const renewed = reader.renew(tokens, intake.assigned());
  if (renewed.length > 0) pods.apply(renewed, []);
}

async function sendStatuses(
  connection: Connection,
  { outbox, clock }: StreamOptions,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await outbox.filled(signal);
    await pause(clock, COALESCE_MS, signal);
    if (signal.aborted) return;
    const pods = outbox.takeBatch().map(encodeStatus);
    if (pods.length > 0) await connection.send({ $case: "podStatuses", value: { pods } });
  }
}

async function beat(connection: Connection, options: StreamOptions, signal: AbortSignal): Promise<void> {
  const { clock, node } = options;
  // Includes changes that happened while the connection was being set up.
  let lastReport = connection.reported;
  while (!signal.aborted) {
    await heartbeat(connection, options);
    const intervalMs = intervalOf(connection);
    await pause(clock, intervalMs, signal);
    // An answer that arrived during the pause.
    const restMs = connection.heartbeatAtMs - clock.monotonicMs();
    if (restMs > 0) await pause(clock, Math.min(restMs, intervalMs), signal);
    const report = node.report();
    if (signal.aborted || isDeepStrictEqual(report, lastReport)) continue;
    lastReport = report;
    await connection.send({ $case: "nodeReport", value: report });
  }
}

function intervalOf({ heartbeatIntervalMs }: Connection): number {
  return heartbeatIntervalMs === 0 ? HEARTBEAT_DEFAULT_MS : Math.max(HEARTBEAT_MIN_MS, heartbeatIntervalMs);
}

async function heartbeat(connection: Connection, { journal, node, gateway }: StreamOptions): Promise<void> {
  const [usage, traffic] = await Promise.all([node.usage().catch(() => undefined), gateway.traffic()]);
  const answerRequested = connection.requestsAnswer();
  const value = { assignmentRevision: journal.revision, usage, traffic, answerRequested };
  await connection.send({ $case: "heartbeat", value });
}
