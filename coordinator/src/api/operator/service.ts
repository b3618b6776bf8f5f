import { nodeId } from "@forage/identity";
import { DEFAULT_JOIN_TTL_MS, mintJoinToken } from "@forage/identity/join-token";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import type { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { type AuthorityHandlerOptions, authorityHandlers } from "../../authority/handlers.ts";
import { type BackupHandlerOptions, backupHandlers } from "../../backups/handlers.ts";
import { type CertificateHandlerOptions, certificateHandlers } from "../../certificates/handlers.ts";
import type { AutoscaleController } from "../../control/autoscale/controller.ts";
import type { UnschedulablePods } from "../../control/placement/unschedulable-pods.ts";
import { CoordinatorError } from "../../errors.ts";
import type { EventLog } from "../../events/event-log.ts";
import type { SessionBroker } from "../../link/session-broker.ts";
import type { MetricsCollector } from "../../metrics/metrics-collector.ts";
import { encodeJsonRecord } from "../../model/codec.ts";
import type { EventRecorder } from "../../model/event.ts";
import { joinTokenKey, resourceKey } from "../../model/keys.ts";
import { hasLabels } from "../../model/labels.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { Notifications } from "../../notifications/open-notifications.ts";
import type { CoordinatorTable } from "../../peers/coordinator-table.ts";
import { callerName } from "../../rpc/caller.ts";
import type { Handlers } from "../../rpc/serve.ts";
import { examineNodesHandler } from "../../support/examine-nodes.ts";
import { type SupportOptions, supportHandlers } from "../../support/handlers.ts";
import { markDeleting } from "../forage/remove.ts";
import type { RolloutSource } from "../forage/watch-rollout.ts";
import { type NamespaceOptions, namespaceHandlers } from "../namespaces/handlers.ts";
import { type ObjectOptions, objectHandlers } from "../objects/handlers.ts";
import { validateJoinToken } from "../validate/tokens.ts";
import { type ApiTokenOptions, createApiToken, listApiTokens, revokeApiToken } from "./api-tokens.ts";
import { apply } from "./apply.ts";
import { type CoordinatorTokenOptions, createCoordinatorToken } from "./coordinator-tokens.ts";
import { copy } from "./copy.ts";
import type { EventOptions } from "./events.ts";
import { exec } from "./exec.ts";
import { imageHandlers } from "./images.ts";
import { type AuditOptions, listAudit } from "./list-audit.ts";
import { logs } from "./logs.ts";
import { metricHandlers } from "./metric-handlers.ts";
import { type NodeOptions, nodeHandlers } from "./node-handlers.ts";
import { type PlanHandlerOptions, plan } from "./plan.ts";
import type { PodUse } from "./pod-use.ts";
import { portForward } from "./port-forward.ts";
import { readHandlers } from "./read-handlers.ts";
import { runCronJob } from "./run-cron-job.ts";
import { translate } from "./translate.ts";
import { updateRollout } from "./update-rollout.ts";
import type { WhyOptions } from "./why.ts";

export interface OperatorOptions
  extends ObjectOptions,
    EventOptions,
    NodeOptions,
    PlanHandlerOptions,
    CertificateHandlerOptions,
    ApiTokenOptions,
    AuditOptions,
    AuthorityHandlerOptions,
    BackupHandlerOptions,
    CoordinatorTokenOptions,
    NamespaceOptions,
    Pick<SupportOptions, "support">,
    Omit<WhyOptions, "unplaced"> {
  /** Returns a random string of lowercase letters and digits with this length. */
  readonly randomName: (length: number) => string;
  /** Runs changes on a simulated copy of the cluster. */
  readonly trials: {
    whatIf(request: wire.WhatIfRequest, caller: string): Promise<wire.WhatIfResponse>;
    capacity(request: wire.CapacityRequest, caller: string): Promise<wire.CapacityResponse>;
  };
  readonly events: EventLog & EventRecorder;
  /** The coordinators of the cluster. Undefined: unknown, as in simulations. */
  readonly coordinators?: Pick<CoordinatorTable, "list" | "preferred"> | undefined;
  /** The receivers of events. Undefined: none, as in simulations. */
  readonly notifications?: Pick<Notifications, "list" | "test"> | undefined;
  readonly unschedulable: UnschedulablePods;
  readonly rollouts: RolloutSource;
  readonly broker: SessionBroker;
  readonly podUse: PodUse;
  readonly metrics: MetricsCollector;
  readonly autoscale: Pick<AutoscaleController, "statusOf">;
}

/** Returns the handlers of the operator API, which the `forage` command uses. */
export function operatorService(options: OperatorOptions): Handlers<typeof OperatorServiceService> {
  const handlers: Omit<Handlers<typeof OperatorServiceService>, "getSupportBundle"> = {
    ...readHandlers(options),
    updateRollout: (request, { caller }) => updateRollout(request, caller, options),
    delete: async (request, { caller }) => remove(request, callerName(caller), options),
    ...objectHandlers(options),
    ...metricHandlers(options.metrics.pushed),
    ...nodeHandlers(options),
    ...certificateHandlers(options),
    ...backupHandlers(options),
    ...authorityHandlers(options),
    ...namespaceHandlers(options),
    createJoinToken: async (request) => createJoinToken(request, options),
    createCoordinatorToken: (request) => createCoordinatorToken(request, options),
    listCoordinators: async () => ({ coordinators: [...(options.coordinators?.list() ?? [])] }),
    listNotifications: async () => ({ notifications: options.notifications?.list() ?? [] }),
    testNotification: ({ name }, { signal }) => testNotification(name, signal, options),
    createApiToken: (request, { caller }) => createApiToken(request, caller, options),
    listApiTokens: () => listApiTokens(options),
    listAudit: (request) => listAudit(request, options),
    revokeApiToken: (request, { caller }) => revokeApiToken(request, caller, options),
    runCronJob: (request, { caller }) => runCronJob(request, caller, options),
    apply: (request, { caller }) => apply(request, caller, options),
    plan: (request, context) => plan(request, context, options),
    whatIf: (request, { caller }) => options.trials.whatIf(request, callerName(caller)),
    capacity: (request, { caller }) => options.trials.capacity(request, callerName(caller)),
    logs: (request, context) => logs(request, context, options),
    exec: (requests, context) => exec(requests, context, options),
    portForward: (requests, context) => portForward(requests, context, options),
    copy: (requests, context) => copy(requests, context, options),
    ...imageHandlers(options),
    examineNodes: examineNodesHandler(options),
  };
  return { ...handlers, ...supportHandlers(options, handlers) };
}

async function testNotification(
  name: string,
  signal: AbortSignal,
  { notifications }: OperatorOptions,
): Promise<wire.TestNotificationResponse> {
  if (name === "") throw new CoordinatorError("INVALID", "name must not be empty");
  if (notifications === undefined)
    throw new CoordinatorError("NOT_FOUND", "this coordinator sends no notifications");
  return notifications.test(name, signal);
}

async function remove(
  request: wire.DeleteRequest,
  by: string,
  { store, state }: OperatorOptions,
): Promise<wire.DeleteResponse> {
  const { namespace, resources, labels, all } = request;
  if (namespace === "") throw new CoordinatorError("INVALID", "namespace must not be empty");
  const byLabels = Object.keys(labels).length > 0;
  if ([all, byLabels, resources.length > 0].filter(Boolean).length !== 1) {
    throw new CoordinatorError("INVALID", "give exactly one of resources, labels and all");
  }
  const keys = new Set(resources.map((ref) => resourceKey(namespace, ref.kind, ref.name)));
  const missing = resources.filter(
    (ref) => state.resource(resourceKey(namespace, ref.kind, ref.name)) === undefined,
  );
  if (missing.length > 0) {
    const names = missing.map((ref) => `${ref.kind}/${ref.name}`).join(", ");
    throw new CoordinatorError("NOT_FOUND", `namespace "${namespace}" has no ${names}; nothing was deleted`);
  }
  const choose = () =>
    state
      .resources(namespace)
      .filter(({ key, record }) => (byLabels ? hasLabels(record.labels, labels) : all || keys.has(key)));
  const marked = await markDeleting(choose, { store, state, by });
  return { deleted: marked.map(({ record }) => ({ namespace, kind: record.kind, name: record.name })) };
}

async function createJoinToken(
  request: wire.CreateJoinTokenRequest,
  { store, clock, randomBytes, authorityPin, reachableAt, coordinators }: OperatorOptions,
): Promise<wire.CreateJoinTokenResponse> {
  validateJoinToken(request);
  const { ttlSeconds, nodeName, reusable, labels, taints } = request;
  const { token, record } = translate(() =>
    mintJoinToken({
      pin: authorityPin(),
      nowMs: clock.nowMs(),
      randomBytes,
      ttlMs: ttlSeconds === 0 ? DEFAULT_JOIN_TTL_MS : ttlSeconds * 1000,
      maxUses: reusable ? MAX_REUSES : 1,
      labels,
      taints,
      ...(nodeName !== "" && { nodeName: nodeId(nodeName) }),
    }),
  );
  await store.txn([], [{ type: "put", key: joinTokenKey(record.id), value: encodeJsonRecord(record) }]);
  const allCoordinators = [...(coordinators?.preferred() ?? [])];
  return {
    token,
    expiresAt: toTimestamp(record.expiresAtMs),
    coordinators: [...reachableAt],
    allCoordinators,
  };
}

/** The limit of uses of a join token: one rack of hosts. */
const MAX_REUSES = 100;
