import {
  type DrainNodeRequest,
  type DrainNodeResponse,
  type DrainPod,
  type WatchDrainRequest,
  WatchDrainResponse,
} from "@forage/proto/forage/operator/v1/operator";
import { DrainRecord } from "@forage/proto/forage/store/v1/store";
import type { RemainingPod } from "../../control/drain/drain-plan.ts";
import { drainStatus, isDrainActive } from "../../control/drain/drain-status.ts";
import type { UnschedulablePods } from "../../control/placement/unschedulable-pods.ts";
import { CoordinatorError } from "../../errors.ts";
import type { EventRecorder } from "../../model/event.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { Signal } from "../../state/signal.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { changeNode, noSuchNode } from "./change-node.ts";
import { drainView, nodeView } from "./node-view.ts";
import type { GatewayStatuses } from "./route-view.ts";

export interface DrainOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly unschedulable: Pick<UnschedulablePods, "get">;
  readonly recorder: EventRecorder;
  readonly gateways: GatewayStatuses;
}

/** The longest time-out of a drain in seconds. */
const MAX_TIMEOUT_SECONDS = 7 * 86_400;

/**
 * Starts, changes or cancels a drain. A repeated request doesn't affect a drain in progress. @throws CoordinatorError
 * INVALID, NOT_FOUND, CONFLICT.
 */
export async function drainNode(
  request: DrainNodeRequest,
  options: DrainOptions,
): Promise<DrainNodeResponse> {
  const { state, clock, recorder } = options;
  const { name, force, includeClaims, timeoutSeconds, uncordonOnReturn } = request;
  if (timeoutSeconds > MAX_TIMEOUT_SECONDS)
    throw new CoordinatorError("INVALID", `timeout_seconds: must be at most ${MAX_TIMEOUT_SECONDS}`);
  const nowMs = clock.nowMs();
  const node = await changeNode(name, options, ({ record, report }) => {
    const before = isDrainActive(record.drain) ? record.drain : undefined;
    const drain = DrainRecord.fromPartial({
      startedAt: before?.startedAt ?? toTimestamp(nowMs),
      force,
      includeClaims,
      uncordonOnReturn,
      bootId: report?.bootId ?? "",
      ...(timeoutSeconds > 0 && { deadline: toTimestamp(nowMs + timeoutSeconds * 1000) }),
    });
    return { ...record, unschedulable: true, drain };
  });
  recorder.record({
    namespace: "",
    kind: "node",
    name,
    node: name,
    type: "Normal",
    reason: "DrainStarted",
    message: `its pods are being moved${force ? ", without regard to disruption budgets" : ""}`,
  });
  return { node: nodeView(state, node, options.gateways) };
}

/** The shortest interval between messages, because pods change more often than people read. */
const PAUSE_MS = 200;

/**
 * Yields the progress of a drain until it ends. @throws CoordinatorError NOT_FOUND; FAILED_PRECONDITION without a drain;
 * ABORTED if the drain was cancelled.
 */
export async function* watchDrain(
  { name }: WatchDrainRequest,
  signal: AbortSignal,
  options: DrainOptions,
): AsyncGenerator<WatchDrainResponse> {
  const { state, clock } = options;
  const changed = new Signal();
  const stop = state.subscribe(() => changed.raise());
  let last = "";
  try {
    while (!signal.aborted) {
      const response = statusOf(name, options, last !== "");
      const text = JSON.stringify(WatchDrainResponse.toJSON(response));
      if (text !== last) yield response;
      last = text;
      if (response.drain?.state !== "draining") return;
      await pause(clock, signal);
      await changed.wait(signal);
    }
  } finally {
    stop();
  }
}

function statusOf(name: string, options: DrainOptions, seen: boolean): WatchDrainResponse {
  const node = options.state.node(name);
  if (node === undefined) throw noSuchNode(name);
  const { drain } = node.record;
  if (drain === undefined) {
    if (seen) throw new CoordinatorError("ABORTED", `the drain of node ${name} was cancelled`);
    throw new CoordinatorError("FAILED_PRECONDITION", `node ${name} is not drained`);
  }
  const { waiting, staying } = drainStatus(node, drain, options);
  return { drain: drainView(drain), waiting: waiting.map(podView), staying: staying.map(podView) };
}

function podView({ pod: { record }, why }: RemainingPod): DrainPod {
  return { namespace: record.namespace, name: record.name, why };
}

function pause(clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      cancel();
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.schedule(PAUSE_MS, finish);
    signal.addEventListener("abort", finish, { once: true });
  });
}
