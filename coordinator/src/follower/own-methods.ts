import type { Log } from "@forage/common/log";
import {
  GetRolloutRequest,
  type OperatorServiceService,
  OperatorServiceService as operator,
} from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService, WatchRolloutRequest } from "@forage/proto/forest/v1/forage";
import { ActingTime } from "../acting-time/acting-time.ts";
import { watchRolloutHandler } from "../api/forage/watch-rollout.ts";
import { namespaceReadHandlers } from "../api/namespaces/handlers.ts";
import { NamespaceRules } from "../api/namespaces/namespace-rules.ts";
import { objectReadHandlers } from "../api/objects/handlers.ts";
import { listApiTokens } from "../api/operator/api-tokens.ts";
import { readHandlers } from "../api/operator/read-handlers.ts";
import type { Config } from "../config.ts";
import { rolloutLimits } from "../control/rollout/rollout-limits.ts";
import { serviceFailure } from "../destination/service-failure.ts";
import { readyEndpointCount } from "../endpoints/endpoints.ts";
import type { EventLog } from "../events/event-log.ts";
import { SessionBroker } from "../link/session-broker.ts";
import type { Vault } from "../objects/vault.ts";
import { randomName } from "../random-name.ts";
import { bytesHandlers } from "../rpc/bytes-handler.ts";
import type { Handlers, ServeOptions } from "../rpc/serve.ts";
import { TokenUses } from "../rpc/token-uses.ts";
import { UnknownFields } from "../rpc/unknown-fields.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import type { ConnectedNodes } from "./connected-nodes.ts";
import { FollowedRollouts } from "./followed-rollouts.ts";
import type { OwnMethod, ServedAt } from "./forward.ts";
import { podSessionMethods } from "./pod-sessions.ts";

export interface OwnMethodsOptions {
  readonly config: Pick<Config, "rollout">;
  readonly store: Store;
  readonly state: ClusterView;
  readonly vault: Vault;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly log: Log;
  /** The kinds of workloads whose pods belong to no resource. */
  readonly foreignKinds: readonly string[];
  /** Reports whether the view is known to be older than the leader's. */
  readonly isBehind: () => boolean;
  /** The nodes whose agents are connected to this coordinator. */
  readonly nodes: Pick<ConnectedNodes, "has" | "request">;
}

type OperatorHandlers = Partial<Handlers<typeof OperatorServiceService>>;

export interface OwnMethods {
  /** The methods by path. */
  readonly methods: ReadonlyMap<string, OwnMethod>;
  /** The handlers of operator methods that a follower can serve completely, for the JSON API. */
  readonly handlers: ReturnType<typeof completeHandlers>;
  close(): void;
}

/**
 * Methods that need data which only the leader has in memory: reasons for waiting, usage, last
 * heartbeats, states of gateways.
 */
const LEADER_FIRST: ReadonlySet<string> = new Set([
  operator.listResources.path,
  operator.listPods.path,
  operator.listNodes.path,
  operator.why.path,
  operator.getRollout.path,
  operator.listApiTokens.path,
  ForageServiceService.watchRollout.path,
]);

/** Returns the methods that a follower serves from its own view. */
export function ownMethods(options: OwnMethodsOptions, serving: ServeOptions): OwnMethods {
  const { state, isBehind } = options;
  const rollouts = openRollouts(options);
  const namespaceRules = new NamespaceRules(state, options.foreignKinds);
  const complete = completeHandlers(options, rollouts, namespaceRules);
  const handlers: OperatorHandlers = { ...readsOf(options, rollouts), ...complete };
  const checking = { ...serving, unknownFields: new UnknownFields() };
  const watchRollout = watchRolloutHandler(state, rollouts);
  const broker = new SessionBroker({ sessions: options.nodes, clock: options.clock, randomName });
  const sessions = podSessionMethods({ ...options, namespaceRules, broker }, serving);
  const served = [
    ...bytesHandlers(operator, handlers, checking),
    ...bytesHandlers(ForageServiceService, { watchRollout }, checking),
  ];
  const isFinished = finishedRollout(state);
  const placeOf = (path: string, first: Buffer): ServedAt => {
    if (isFinished(path, first)) return "here";
    return isBehind() || LEADER_FIRST.has(path) ? "leader-first" : "here";
  };
  const isStream = (path: string): boolean => path === ForageServiceService.watchRollout.path;
  return {
    methods: new Map<string, OwnMethod>([
      ...served.map(([path, serve]): [string, OwnMethod] => [
        path,
        { serve, isStream: isStream(path), placeOf: (first: Buffer) => placeOf(path, first) },
      ]),
      ...sessions,
    ]),
    handlers: complete,
    close: () => rollouts.close(),
  };
}

function openRollouts({ config, state, clock }: OwnMethodsOptions): FollowedRollouts {
  return new FollowedRollouts({
    state,
    clock,
    time: new ActingTime({ clock }),
    unschedulable: NONE,
    limits: rolloutLimits(config),
    readyEndpoints: (namespace, service) => readyEndpointCount(state, namespace, service),
    serviceFailure: (namespace, service) => serviceFailure(state, namespace, service),
  });
}

const NONE = { get: () => undefined };

function readsOf({ state, clock, events }: OwnMethodsOptions, rollouts: FollowedRollouts) {
  return readHandlers({
    ...{ state, clock, events, rollouts, unschedulable: NONE },
    rolloutView: (key) => rollouts.rolloutView(key),
    explainPlacement: () => undefined,
    metrics: { usage: NONE },
    autoscale: { statusOf: () => undefined },
    gateways: { statusOf: () => undefined, nodeState: () => undefined },
  });
}

function completeHandlers(
  options: OwnMethodsOptions,
  rollouts: FollowedRollouts,
  namespaceRules: NamespaceRules,
) {
  const { state, vault, clock, store, log } = options;
  const { nowMs, schedule } = clock;
  const tokenUses = new TokenUses({ store, log, nowMs, schedule });
  const { listEndpoints, listRevisions, listEvents, watchEvents } = readsOf(options, rollouts);
  return {
    ...{ listEndpoints, listRevisions, listEvents, watchEvents },
    ...objectReadHandlers({ state, vault }),
    ...namespaceReadHandlers({ state, namespaceRules }),
    listApiTokens: () => listApiTokens({ state, clock, tokenUses }),
  } satisfies OperatorHandlers;
}

/**
 * Reports whether a request is for a rollout that has ended, whose record contains the whole
 * answer.
 */
function finishedRollout(state: ClusterView): (path: string, first: Buffer) => boolean {
  const isFinished = (id: string): boolean => state.rollout(id)?.record.finished === true;
  return (path, first) => {
    try {
      if (path === ForageServiceService.watchRollout.path)
        return isFinished(WatchRolloutRequest.decode(first).rolloutId);
      if (path !== operator.getRollout.path) return false;
      const { by } = GetRolloutRequest.decode(first);
      return by?.$case === "rolloutId" && isFinished(by.value);
    } catch {
      // The leader refuses messages that can't be decoded.
      return false;
    }
  };
}
