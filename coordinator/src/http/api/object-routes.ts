import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import type { ObjectHandlers } from "../../api/objects/handlers.ts";
import { CoordinatorError } from "../../errors.ts";
import type { ObjectKind, ObjectName } from "../../model/object-name.ts";
import type { CallContext } from "../../rpc/caller.ts";
import { type ApiCallOptions, assertPrivate, type Bound, bodyOf, callAs, failed, limitBody } from "./call.ts";
import { jsonOf, objectOf } from "./object-json.ts";

export interface ObjectRouteOptions extends ApiCallOptions {
  /** The handlers. A follower has only those that read. */
  readonly handlers: Pick<ObjectHandlers, "getObject" | "listObjects"> & Partial<ObjectHandlers>;
}

/** Kinds by their names in paths. */
const KINDS: Readonly<Record<string, ObjectKind>> = {
  secrets: "secret",
  configmaps: "config_map",
  registrycredentials: "registry_credential",
  persistentvolumeclaims: "claim",
};

/** The size limit of a body: a megabyte of data in base64, with its keys. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

type Method = keyof ObjectHandlers;
type Work = (name: ObjectName, c: Bound, call: Call) => Promise<Record<string, unknown>>;
/** Calls a handler with the same checks as a gRPC client with the same token. */
type Call = <M extends Method>(
  method: M,
  request: Parameters<ObjectHandlers[M]>[0],
) => Promise<Awaited<ReturnType<ObjectHandlers[M]>>>;
/** A handler of any method. `Call` has the precise types. */
type Handler = (request: unknown, context: CallContext) => Promise<never>;

/**
 * Adds the routes for secrets, config maps and other objects: JSON below `/api/v1`. Tokens, roles
 * and checks are the same as for gRPC, because each route makes one of its calls. Only loopback and
 * TLS connections are served, so that values never cross a network in plain text.
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
  throw new CoordinatorError("UNAVAILABLE", "only the leader serves this: try again");
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
