import { type PlanRequest, PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { type PlanHandlerOptions, plan } from "../../api/operator/plan.ts";
import { type ApiCallOptions, assertPrivate, bodyOf, callAs, failed, limitBody } from "./call.ts";
import { messageJson } from "./message-json.ts";

export interface PlanRouteOptions extends ApiCallOptions, PlanHandlerOptions {}

/** The size limit of a body. The largest accepted request is longer in JSON. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * Adds the route for plans. Its body is a bundle in proto-JSON form, and its path contains the
 * namespace. Returns what an apply would do, and changes nothing.
 */
export function addPlanRoutes(app: Hono<{ Bindings: HttpBindings }>, options: PlanRouteOptions): void {
  app.post("/api/v1/namespaces/:namespace/plan", limitBody(MAX_BODY_BYTES, options.identify), async (c) => {
    try {
      assertPrivate(c);
      const namespace = c.req.param("namespace");
      const json = messageJson(await bodyOf(c), "forest.v1.ApplyResourcesRequest");
      const request: PlanRequest = {
        namespace,
        bundle: ApplyResourcesRequest.fromJSON({ namespace, ...json }),
      };
      const answer = await callAs(c, "plan", request, (it, context) => plan(it, context, options), options);
      return c.json(PlanResponse.toJSON(answer) as object, 200, { "cache-control": "no-store" });
    } catch (error) {
      return failed(c, error);
    }
  });
}
