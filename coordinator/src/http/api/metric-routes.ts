import type { PushedMetric } from "@forage/proto/forage/operator/v1/operator";
import { parseQuantity } from "@forage/scheduler";
import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import * as z from "zod";
import type { MetricHandlers } from "../../api/operator/metric-handlers.ts";
import { CoordinatorError } from "../../errors.ts";
import { numberOf } from "../../model/autoscaling.ts";
import { toEpochMs } from "../../model/timestamp.ts";
import { type ApiCallOptions, assertPrivate, type Bound, bodyOf, callAs, failed, limitBody } from "./call.ts";

export interface MetricRouteOptions extends ApiCallOptions {
  readonly handlers: MetricHandlers;
}

const MAX_BODY_BYTES = 16 * 1024;

const body = z.strictObject({
  /** A number, or a quantity such as "1500m". */
  value: z.union([
    z.number(),
    z.string().max(64).refine(isQuantity, "must be a number or a quantity such as 1500m"),
  ]),
  workload: z.string().default(""),
  pod: z.string().default(""),
  ttlSeconds: z
    .int()
    .min(0)
    .max(2 ** 31 - 1)
    .default(0),
});

/**
 * Adds the routes by which custom metrics for the autoscaler are pushed: JSON below
 * `/api/v1/namespaces/NAMESPACE/metrics`. Tokens, roles and checks are the same as for gRPC. Only
 * loopback and TLS connections are served, because requests contain the token.
 */
export function addMetricRoutes(app: Hono<{ Bindings: HttpBindings }>, options: MetricRouteOptions): void {
  const collection = "/api/v1/namespaces/:namespace/metrics";
  const served = (work: Work) => (c: Bound) => serve(c, work, options);
  app.get(collection, served(list));
  app.get(`${collection}/:name`, served(list));
  app.put(`${collection}/:name`, limitBody(MAX_BODY_BYTES, options.identify), served(put));
  app.delete(`${collection}/:name`, served(remove));
}

type Work = (c: Bound, options: MetricRouteOptions) => Promise<Record<string, unknown>>;

async function serve(c: Bound, work: Work, options: MetricRouteOptions): Promise<Response> {
  try {
    assertPrivate(c);
    return c.json(await work(c, options), 200, { "cache-control": "no-store" });
  } catch (error) {
    return failed(c, error);
  }
}

const list: Work = async (c, options) => {
  const request = { namespace: c.req.param("namespace") ?? "", name: c.req.param("name") ?? "" };
  const { metrics } = await callAs(c, "listMetrics", request, options.handlers.listMetrics, options);
  return { items: metrics.map(jsonOf) };
};

const put: Work = async (c, options) => {
  const { namespace, name } = nameOf(c);
  const { value, ...rest } = read(await bodyOf(c));
  const metric: PushedMetric = {
    namespace,
    name,
    ...rest,
    value: typeof value === "number" ? value : numberOf(value),
    pushedAt: undefined,
    expiresAt: undefined,
  };
  const request = { namespace, metric };
  const { metric: stored } = await callAs(c, "putMetric", request, options.handlers.putMetric, options);
  return stored === undefined ? {} : jsonOf(stored);
};

const remove: Work = async (c, options) => {
  const { workload = "", pod = "" } = c.req.query();
  const request = { ...nameOf(c), workload, pod };
  await callAs(c, "deleteMetric", request, options.handlers.deleteMetric, options);
  return {};
};

function nameOf(c: Bound): { readonly namespace: string; readonly name: string } {
  return { namespace: c.req.param("namespace") ?? "", name: c.req.param("name") ?? "" };
}

function read(given: unknown): z.infer<typeof body> {
  const result = body.safeParse(given);
  if (result.success) return result.data;
  const violations = result.error.issues.map(({ path, message }) => {
    return { field: path.join("."), description: message };
  });
  const texts = violations.map(({ field, description }) => `${field || "body"}: ${description}`).slice(0, 5);
  throw new CoordinatorError("INVALID", `the body is invalid: ${texts.join("; ")}`, { violations });
}

function isQuantity(text: string): boolean {
  try {
    parseQuantity(text);
    return true;
  } catch {
    return false;
  }
}

function jsonOf({ namespace, name, workload, pod, value, ...rest }: PushedMetric): Record<string, unknown> {
  const time = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
  return {
    namespace,
    name,
    ...(workload !== "" && { workload }),
    ...(pod !== "" && { pod }),
    value,
    ttlSeconds: rest.ttlSeconds,
    pushedAt: time(toEpochMs(rest.pushedAt)),
    expiresAt: time(toEpochMs(rest.expiresAt)),
  };
}
