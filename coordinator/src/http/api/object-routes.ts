import { status as Code, Metadata } from "@grpc/grpc-js";
import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { ObjectHandlers } from "../../api/objects/handlers.ts";
import { CoordinatorError } from "../../errors.ts";
import type { ObjectKind, ObjectName } from "../../model/object-name.ts";
import { assertMayCall } from "../../rpc/access.ts";
import type { CallContext } from "../../rpc/caller.ts";
import { type IdentifyOptions, identify } from "../../rpc/identify.ts";
import { toServiceError } from "../../rpc/status.ts";
import { jsonOf, objectOf } from "./object-json.ts";

export interface ObjectRouteOptions {
  readonly handlers: ObjectHandlers;
  readonly identify: IdentifyOptions;
  readonly observe: (method: string, code: number, seconds: number) => void;
  readonly monotonicMs: () => number;
}

/** By the word in the path. */
const kinds: Readonly<Record<string, ObjectKind>> = {
  secrets: "secret",
  configmaps: "config_map",
  registrycredentials: "registry_credential",
  persistentvolumeclaims: "claim",
};

/** A megabyte in base64, and its keys. */
const maxBodyBytes = 2 * 1024 * 1024;
const service = "/forage.operator.v1.OperatorService";

type Bound = Context<{ Bindings: HttpBindings }>;
type Method = keyof ObjectHandlers;
type Work = (name: ObjectName, c: Bound, call: Call) => Promise<Record<string, unknown>>;
/** Calls a handler as a gRPC client with the same token would. */
type Call = <M extends Method>(
  method: M,
  request: Parameters<ObjectHandlers[M]>[0],
) => Promise<Awaited<ReturnType<ObjectHandlers[M]>>>;
/** Whatever the method; `Call` says what goes in and comes out. */
type Handler = (request: unknown, context: CallContext) => Promise<never>;

/**
 * Secrets, config maps and the like as JSON below `/api/v1`. The same tokens, roles and checks as by gRPC: each route is one
 * of its calls. Values never cross a network in plain text: without TLS only connections over loopback are served.
 */
export function addObjectRoutes(app: Hono<{ Bindings: HttpBindings }>, options: ObjectRouteOptions): void {
  const limited = bodyLimit({
    maxSize: maxBodyBytes,
    onError: (c) =>
      failed(c, new CoordinatorError("INVALID", `the body must not be longer than ${maxBodyBytes} bytes`)),
  });
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
    return c.json(await work(nameOf(c, kind), c, callAs(c, options)), 200, { "cache-control": "no-store" });
  } catch (error) {
    return failed(c, error);
  }
}

/** Throws FAILED_PRECONDITION where others could listen. */
function assertPrivate(c: Bound): void {
  const { socket } = c.env.incoming;
  const address = (socket.localAddress ?? "").replace(/^::ffff:/, "");
  if ("encrypted" in socket || address === "::1" || address.startsWith("127.")) return;
  throw new CoordinatorError(
    "FAILED_PRECONDITION",
    "secrets don't cross a network in plain text: set `http.tls: true` in the coordinator's configuration, or use gRPC",
  );
}

function nameOf(c: Bound, kind: ObjectKind | undefined): ObjectName {
  const name = c.req.param("name") ?? "";
  if (kind !== undefined) return { namespace: "", kind, name };
  const plural = c.req.param("plural") ?? "";
  const named = Object.hasOwn(kinds, plural) ? kinds[plural] : undefined;
  if (named === undefined)
    throw new CoordinatorError(
      "NOT_FOUND",
      `there are no such things; there are ${Object.keys(kinds).join(", ")}`,
    );
  return { namespace: c.req.param("namespace") ?? "", kind: named, name };
}

async function bodyOf(c: Bound): Promise<unknown> {
  try {
    return await c.req.json();
  } catch {
    // The parser's error quotes the body, which holds secrets.
    throw new CoordinatorError("INVALID", "the body must be JSON");
  }
}

function callAs(c: Bound, { handlers, identify: how, observe, monotonicMs }: ObjectRouteOptions): Call {
  const metadata = new Metadata();
  const header = c.req.header("authorization");
  if (header !== undefined) metadata.set("authorization", header);
  const { remoteAddress = "", remotePort = 0 } = c.env.incoming.socket;
  const caller = identify(metadata, { kind: "anonymous", remoteAddress }, how);
  return async (name, request) => {
    const method = `${service}/${name.charAt(0).toUpperCase()}${name.slice(1)}`;
    const startedMs = monotonicMs();
    let code = Code.OK;
    try {
      assertMayCall(caller, method, request);
      const peer = `${remoteAddress}:${remotePort}`;
      const handler = handlers[name] as Handler;
      return await handler(request, { method, caller, peer, signal: c.req.raw.signal });
    } catch (error) {
      code = toServiceError(error).code;
      throw error;
    } finally {
      observe(method, code, (monotonicMs() - startedMs) / 1000);
    }
  };
}

const httpStatus: Partial<Record<Code, 400 | 401 | 403 | 404 | 409 | 412 | 429 | 503>> = {
  [Code.INVALID_ARGUMENT]: 400,
  [Code.UNAUTHENTICATED]: 401,
  [Code.PERMISSION_DENIED]: 403,
  [Code.NOT_FOUND]: 404,
  [Code.ALREADY_EXISTS]: 409,
  [Code.ABORTED]: 409,
  [Code.FAILED_PRECONDITION]: 412,
  [Code.RESOURCE_EXHAUSTED]: 429,
  [Code.UNAVAILABLE]: 503,
};

function failed(c: Context, error: unknown): Response {
  const { code, details } = toServiceError(error);
  const violations = error instanceof CoordinatorError ? error.violations : [];
  const body = { code: Code[code], message: details, ...(violations.length > 0 && { violations }) };
  return c.json(body, httpStatus[code] ?? 500);
}
