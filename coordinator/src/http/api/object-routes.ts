import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import type { ObjectHandlers } from "../../api/objects/handlers.ts";
import { CoordinatorError } from "../../errors.ts";
import type { ObjectKind, ObjectName } from "../../model/object-name.ts";
import type { CallContext } from "../../rpc/caller.ts";
import { type ApiCallOptions, assertPrivate, type Bound, bodyOf, callAs, failed, limitBody } from "./call.ts";
import { jsonOf, objectOf } from "./object-json.ts";

export interface ObjectRouteOptions extends ApiCallOptions {
  /** A coordinator that follows has those only that read. */
  readonly handlers: Pick<ObjectHandlers, "getObject" | "listObjects"> & Partial<ObjectHandlers>;
}

/** Keyed by the word in the path. */
const KINDS: Readonly<Record<string, ObjectKind>> = {
  secrets: "secret",
  configmaps: "config_map",
  registrycredentials: "registry_credential",
  persistentvolumeclaims: "claim",
};

/** A megabyte in base64, and its keys. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

type Method = keyof ObjectHandlers;
type Work = (name: ObjectName, c: Bound, call: Call) => Promise<Record<string, unknown>>;
/** Calls a handler as a gRPC client with the same token would. */
type Call = <M extends Method>(
  method: M,
  request: Parameters<ObjectHandlers[M]>[0],
) => Promise<Awaited<ReturnType<ObjectHandlers[M]>>>;
/** A handler of any method. `Call` has the types of its request and response. */
type Handler = (request: unknown, context: CallContext) => Promise<never>;

/**
 * Secrets, config maps and the like as JSON below `/api/v1`. The same tokens, roles and checks as by gRPC: each route is one
 * of its calls. Values never cross a network in plain text: without TLS only connections over loopback are served.
 */
export function addObjectRoutes(app: Hono<{ Bindings: HttpBindings }>, options: ObjectRouteOptions): void {
  const limited = limitBody(MAX_BODY_BYTES, options.identify);
  for (const [collection, kind] of [
    ["/api/v1/namespaces/:namespace/:plural", undefined],
    ["/api/v1/priorityclasses", "priority_class"],
  ] as const) {
    const served = (work: Work) => (c: Bound) => serve(c, kind, work, options);
    app.get(collection, served(list));
    app.get(`${collection}/:name`, served(get));
    app.put(`${collection}/:name`, limited, served(put));
    app.delete(`${collection}/:name`, served(remove));
  }
}

const list: Work = async ({ namespace, kind }, _c, call) => {
  const { objects } = await call("listObjects", { namespace, kind, labels: {} });
  return { items: objects.map(jsonOf) };
};

const get: Work = async (name, c, call) => {
  const method = c.req.query("reveal") === "true" ? "revealObject" : "getObject";
  const { object } = await call(method, name);
  return object === undefined ? {} : jsonOf(object);
};

const put: Work = async (name, c, call) => {
  const object = objectOf(name, await bodyOf(c));
  const createOnly = c.req.query("createOnly") === "true";
  const { action, object: stored } = await call("putObject", {
    namespace: name.namespace,
    object,
    createOnly,
  });
  return { action, ...(stored !== undefined && jsonOf(stored)) };
};

const remove: Work = async (name, _c, call) => ({ ...(await call("deleteObject", name)) });

async function serve(
  c: Bound,
  kind: ObjectKind | undefined,
  work: Work,
  options: ObjectRouteOptions,
): Promise<Response> {
  try {
    assertPrivate(c);
    const call: Call = (name, request) =>
      callAs(c, name, request, (options.handlers[name] ?? notHere) as Handler, options);
    return c.json(await work(nameOf(c, kind), c, call), 200, { "cache-control": "no-store" });
  } catch (error) {
    return failed(c, error);
  }
}

async function notHere(): Promise<never> {
  throw new CoordinatorError("UNAVAILABLE", "only the coordinator that leads serves this: try again");
}

function nameOf(c: Bound, kind: ObjectKind | undefined): ObjectName {
  const name = c.req.param("name") ?? "";
  if (kind !== undefined) return { namespace: "", kind, name };
  const plural = c.req.param("plural") ?? "";
  const named = Object.hasOwn(KINDS, plural) ? KINDS[plural] : undefined;
  if (named === undefined)
    throw new CoordinatorError(
      "NOT_FOUND",
      `there are no such things; there are ${Object.keys(KINDS).join(", ")}`,
    );
  return { namespace: c.req.param("namespace") ?? "", kind: named, name };
}
