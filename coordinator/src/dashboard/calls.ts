import * as wire from "@forage/proto/forage/operator/v1/operator";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { messageJson } from "../http/api/message-json.ts";
import type { OperatorHandlers } from "./handlers.ts";

/** A method with one request and one answer, with the JSON codecs of the generated messages. */
interface DashboardCall {
  readonly request: { fromJSON(value: unknown): unknown };
  readonly response: { toJSON(message: never): unknown };
}

/** The methods of the operator service that pages may call, with the codecs of their messages. */
export const DASHBOARD_CALLS = {
  listResources: { request: wire.ListResourcesRequest, response: wire.ListResourcesResponse },
  listPods: { request: wire.ListPodsRequest, response: wire.ListPodsResponse },
  listNodes: { request: wire.ListNodesRequest, response: wire.ListNodesResponse },
  listNamespaces: { request: wire.ListNamespacesRequest, response: wire.ListNamespacesResponse },
  listEvents: { request: wire.ListEventsRequest, response: wire.ListEventsResponse },
  getRollout: { request: wire.GetRolloutRequest, response: wire.GetRolloutResponse },
  listRevisions: { request: wire.ListRevisionsRequest, response: wire.ListRevisionsResponse },
  updateRollout: { request: wire.UpdateRolloutRequest, response: wire.UpdateRolloutResponse },
  runCronJob: { request: wire.RunCronJobRequest, response: wire.RunCronJobResponse },
  why: { request: wire.WhyRequest, response: wire.WhyResponse },
  plan: { request: { fromJSON: planRequest }, response: wire.PlanResponse },
  planObject: { request: wire.PlanObjectRequest, response: wire.PlanObjectResponse },
  whatIf: { request: wire.WhatIfRequest, response: wire.WhatIfResponse },
  updateNode: { request: wire.UpdateNodeRequest, response: wire.UpdateNodeResponse },
  drainNode: { request: wire.DrainNodeRequest, response: wire.DrainNodeResponse },
  listObjects: { request: wire.ListObjectsRequest, response: wire.ListObjectsResponse },
  revealObject: { request: wire.RevealObjectRequest, response: wire.RevealObjectResponse },
  listCertificates: { request: wire.ListCertificatesRequest, response: wire.ListCertificatesResponse },
  renewCertificate: { request: wire.RenewCertificateRequest, response: wire.RenewCertificateResponse },
} satisfies Partial<Record<keyof OperatorHandlers, DashboardCall>>;

export type DashboardCallName = keyof typeof DASHBOARD_CALLS;

export function isDashboardCall(name: string): name is DashboardCallName {
  return Object.hasOwn(DASHBOARD_CALLS, name);
}

/**
 * Decodes the request of a plan. Users write its bundle, so unknown fields are errors. Throws
 * INVALID with their paths.
 */
function planRequest(value: unknown): wire.PlanRequest {
  const { bundle, ...rest } = (value ?? {}) as { readonly bundle?: unknown };
  const request = wire.PlanRequest.fromJSON(rest);
  if (bundle === undefined) return request;
  const json = messageJson(bundle, "forest.v1.ApplyResourcesRequest");
  return { ...request, bundle: ApplyResourcesRequest.fromJSON(json) };
}
