import type { WhyRequest, WhyResponse } from "@forage/proto/forage/operator/v1/operator";
import { serviceFailure } from "../../destination/service-failure.ts";
import { readyEndpointCount } from "../../endpoints/endpoints.ts";
import { CoordinatorError } from "../../errors.ts";
import type { EventLog } from "../../events/event-log.ts";
import { newestEvents } from "../../events/query.ts";
import { hint } from "../../model/hint.ts";
import { resourceKey } from "../../model/keys.ts";
import type { Clock } from "../../time/clock.ts";
import { type Cause, cause, type Diagnosis } from "../../why/cause.ts";
import { explainCronJob } from "../../why/cron-job.ts";
import {
  cronJobInput,
  type ExplainOptions,
  nodeInput,
  podInput,
  workloadInput,
} from "../../why/explain-inputs.ts";
import { explainNode } from "../../why/node.ts";
import { explainKeptPod, explainPod } from "../../why/pod.ts";
import { explainRoute, routeCauses } from "../../why/route.ts";
import { explainWorkload } from "../../why/workload.ts";
import { policyRefusalIn } from "../namespaces/stored-violations.ts";
import { eventView } from "./events.ts";
import { findPodOrKept } from "./find.ts";
import type { GatewayStatuses } from "./route-view.ts";

export interface WhyOptions extends Omit<ExplainOptions, "nowMs"> {
  readonly clock: Clock;
  readonly events: EventLog;
  readonly gateways: GatewayStatuses;
}

/** The number of recent events in the response. */
const LAST_EVENTS = 10;

/** Explains the state of an object. @throws CoordinatorError INVALID, NOT_FOUND. */
export async function why({ namespace, kind, name }: WhyRequest, options: WhyOptions): Promise<WhyResponse> {
  if (kind === "" || name === "") throw new CoordinatorError("INVALID", "kind and name must not be empty");
  if ((kind === "node") !== (namespace === ""))
    throw new CoordinatorError("INVALID", "namespace must be empty for a node, and set for everything else");
  const explainOptions = { ...options, nowMs: options.clock.nowMs() };
  const full =
    kind === "pod"
      ? findPodOrKept(options.state, namespace, name, explainOptions.nowMs).pod.record.name
      : name;
  const explained = withPolicy(
    explain({ namespace, kind, name: full }, explainOptions),
    { namespace, kind, name: full },
    explainOptions,
  );
  const query = { namespace, kind, name: full, type: "", reason: "", sinceMs: undefined };
  const { events } = await newestEvents(options.events, query, 0, LAST_EVENTS);
  return {
    ...explained,
    causes: explained.causes.map((it) => ({ ...it, details: [...it.details] })),
    events: events.map(eventView),
  };
}

/**
 * Adds a violation of the namespace's policy to the explanation. It is no cause of an unhealthy state, because a stricter
 * policy stops no pod.
 */
function withPolicy(
  explained: Diagnosis,
  { namespace, kind, name }: WhyRequest,
  options: ExplainOptions,
): Diagnosis {
  const { state } = options;
  const workload = kind === "pod" ? state.pod(namespace, name)?.workloadKey : `${namespace}/${kind}/${name}`;
  const [, of = "", called = ""] = workload?.split("/") ?? [];
  const record = state.resource(resourceKey(namespace, of, called))?.record;
  const refusal = record && policyRefusalIn(state)(record);
  if (refusal === undefined) return explained;
  const effect =
    of === "cron_job" ? "no run starts" : "its pods keep running, and the next apply is rejected";
  const advice = `change the manifest and apply it, or have an admin allow it: forage namespace policy get ${namespace}`;
  const found = cause(
    "PolicyViolated",
    `${of}/${called} violates the policy of its namespace: ${refusal}; ${effect}`,
    advice,
  );
  return { ...explained, causes: [...explained.causes, found] };
}

function explain(
  { namespace, kind, name }: WhyRequest,
  options: ExplainOptions & Pick<WhyOptions, "gateways">,
): Diagnosis {
  const { state } = options;
  if (kind === "pod") {
    const { pod, keptUntilMs } = findPodOrKept(state, namespace, name, options.nowMs);
    const input = podInput(pod, options);
    return keptUntilMs === undefined ? explainPod(input) : explainKeptPod(input, keptUntilMs);
  }
  if (kind === "node") {
    const node = state.node(name);
    if (node === undefined) throw new CoordinatorError("NOT_FOUND", `there is no node "${name}"`);
    return explainNode(nodeInput(node, options));
  }
  const entry = state.resource(resourceKey(namespace, kind, name));
  if (entry === undefined)
    throw new CoordinatorError("NOT_FOUND", `namespace "${namespace}" has no ${kind}/${name}`);
  const cronJob = cronJobInput(entry, options);
  if (cronJob !== undefined) return explainCronJob(cronJob);
  const spec = entry.record.resource?.spec;
  const route = options.gateways.statusOf(kind, namespace, name);
  if (spec?.$case === "route") return explainRoute(name, namespace, route);
  if (spec?.$case !== "service") return explainWorkload(workloadInput(entry, options));
  const causes = route === undefined ? [] : routeCauses(namespace, route);
  const failure = serviceFailure(state, namespace, name);
  if (failure !== undefined) {
    const summary = `service/${name} can't serve: ${failure.message}`;
    return { summary, healthy: false, causes: [cause(failure.reason, failure.message), ...causes] };
  }
  return explainService(
    namespace,
    name,
    spec.value.target,
    readyEndpointCount(state, namespace, name),
    causes,
  );
}

function explainService(
  namespace: string,
  name: string,
  target: string,
  ready: number,
  routeCauses: readonly Cause[],
): Diagnosis {
  const [wrong] = routeCauses;
  const routeText = wrong === undefined ? "" : `; its route: ${wrong.message}`;
  if (ready > 0)
    return {
      summary: `service/${name} has ${ready} ready endpoints${routeText}`,
      healthy: wrong === undefined,
      causes: routeCauses,
    };
  const message = `none of the pods of container_service/${target} is ready`;
  const none = cause("NoEndpoints", message, hint(namespace, `why container_service/${target}`));
  const summary = `service/${name} has no ready endpoints: ${message}`;
  return { summary, healthy: false, causes: [none, ...routeCauses] };
}
