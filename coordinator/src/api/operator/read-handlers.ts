import { messageOf } from "@forage/common/message-of";
import type { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import * as wire from "@forage/proto/forage/operator/v1/operator";
import { RolloutReason } from "@forage/proto/forage/store/v1/store";
import type { AutoscaleController } from "../../control/autoscale/controller.ts";
import type { UnschedulablePods } from "../../control/placement/unschedulable-pods.ts";
import { CoordinatorError } from "../../errors.ts";
import { hasLabels } from "../../model/labels.ts";
import { assertNamespace } from "../../rpc/access.ts";
import type { CallContext } from "../../rpc/caller.ts";
import type { Handlers } from "../../rpc/serve.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry, RolloutEntry } from "../../state/entries.ts";
import type { RolloutSource } from "../forage/watch-rollout.ts";
import { currentRolloutStatus } from "./current-rollout-status.ts";
import { type EventOptions, listEvents, watchEventsHandler } from "./events.ts";
import { listPods } from "./list-pods.ts";
import { nodeView } from "./node-view.ts";
import { listRevisions } from "./revisions.ts";
import { routeView } from "./route-view.ts";
import type { PodUsageSource } from "./usage-view.ts";
import { endpointViews, resourceView } from "./views.ts";
import { type WhyOptions, why } from "./why.ts";

export interface ReadOptions extends EventOptions, WhyOptions {
  readonly unschedulable: Pick<UnschedulablePods, "get">;
  readonly rollouts: Pick<RolloutSource, "progress">;
  readonly metrics: { readonly usage: PodUsageSource };
  readonly autoscale: Pick<AutoscaleController, "statusOf">;
}

export type ResourceViewOptions = Pick<ReadOptions, "state" | "clock" | "autoscale" | "gateways">;

export type ReadHandlers = Pick<
  Handlers<typeof OperatorServiceService>,
  | "listResources"
  | "listPods"
  | "listNodes"
  | "listEndpoints"
  | "getRollout"
  | "listRevisions"
  | "listEvents"
  | "watchEvents"
  | "why"
>;

/** Returns the handlers of calls that read the view and the events. Followers serve them as well. */
export function readHandlers(options: ReadOptions): ReadHandlers {
  const { state, gateways } = options;
  return {
    listResources: async ({ namespace, labels, kind, name }) => {
      const entries = state
        .resources(namespace || undefined)
        .filter(
          ({ record }) =>
            hasLabels(record.labels, labels) &&
            (kind === undefined || record.kind === kind) &&
            (name === undefined || record.name === name),
        );
      return { resources: entries.map((entry) => viewOrFault(entry, options)) };
    },
    listPods: async (request) => listPods(request, options),
    listNodes: async ({ name }) => {
      const nodes = state.nodes().filter((node) => name === undefined || node.name === name);
      return { nodes: nodes.map((node) => nodeView(state, node, gateways)) };
    },
    listEndpoints: async ({ namespace, service }) => {
      const services = state
        .resources(namespace || undefined)
        .filter(({ record }) => record.kind === "service");
      const chosen = services.filter(({ record }) => service === "" || record.name === service);
      return {
        endpoints: chosen.flatMap(({ record }) => endpointViews(state, record.namespace, record.name)),
      };
    },
    getRollout: async (request, context) => getRollout(request, context, options),
    listRevisions: async (request) => listRevisions(request, state),
    listEvents: (request) => listEvents(request, options),
    watchEvents: watchEventsHandler(options),
    why: (request) => why(request, options),
  };
}

/**
 * Returns the view of a resource. If it can't be computed, returns one with the error, so that the other resources are
 * still listed.
 */
export function viewOrFault(entry: ResourceEntry, options: ResourceViewOptions): wire.Resource {
  try {
    return viewOf(entry, options);
  } catch (error) {
    const { namespace, kind, name, labels, deleting, generation } = entry.record;
    const message = `the coordinator can't decode it: ${messageOf(error)}; apply it again or delete it`;
    return wire.Resource.fromPartial({ namespace, kind, name, labels, deleting, generation, message });
  }
}

function viewOf(entry: ResourceEntry, options: ResourceViewOptions): wire.Resource {
  const { state, clock, autoscale, gateways } = options;
  const { kind, namespace, name } = entry.record;
  const autoscaling = kind === "container_service" ? autoscale.statusOf(namespace, name) : undefined;
  const route = gateways.statusOf(kind, namespace, name);
  return { ...resourceView(state, entry, clock.nowMs()), autoscaling, route: route && routeView(route) };
}

function getRollout(
  request: wire.GetRolloutRequest,
  context: CallContext,
  options: ReadOptions,
): wire.GetRolloutResponse {
  const rollout = findRollout(request, options.state);
  assertNamespace(context.caller, context.method, rollout.record.namespace);
  const progress = options.rollouts.progress(rollout.id) ?? [];
  return {
    rolloutId: rollout.id,
    namespace: rollout.record.namespace,
    createdAt: rollout.record.createdAt,
    finished: rollout.record.finished,
    resources: progress.map((target, index) => {
      const { kind, name, action, status, message, reason } = target;
      const finishedAt = rollout.record.resources[index]?.finishedAt;
      const now =
        finishedAt === undefined
          ? ""
          : currentRolloutStatus(rollout, target, options.state, options.clock.nowMs());
      return { kind, name, action, status, message, reason: reasonWord(reason), finishedAt, now };
    }),
  };
}

function findRollout({ by }: wire.GetRolloutRequest, state: ClusterView): RolloutEntry {
  if (by === undefined) throw new CoordinatorError("INVALID", "set rollout_id or a resource");
  const found =
    by.$case === "rolloutId"
      ? state.rollout(by.value)
      : state.rolloutsOf(by.value.namespace, by.value.kind, by.value.name).at(-1);
  if (found !== undefined) return found;
  const what =
    by.$case === "rolloutId" ? `rollout "${by.value}"` : `rollout of ${by.value.kind}/${by.value.name}`;
  throw new CoordinatorError("NOT_FOUND", `there is no ${what}`);
}

function reasonWord(reason: RolloutReason): string {
  const name = Object.entries(RolloutReason).find(([, value]) => value === reason)?.[0] ?? "";
  return name === "UNSPECIFIED" ? "" : name.toLowerCase();
}
