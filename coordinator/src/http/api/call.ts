import { status as Code, Metadata } from "@grpc/grpc-js";
import type { HttpBindings } from "@hono/node-server";
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { CoordinatorError } from "../../errors.ts";
import { assertMayCall } from "../../rpc/access.ts";
import type { CallAudit } from "../../rpc/call-audit.ts";
import type { CallContext, Caller } from "../../rpc/caller.ts";
import { type IdentifyOptions, identify } from "../../rpc/identify.ts";
import { denied } from "../../rpc/may-deny.ts";
import { toServiceError } from "../../rpc/status.ts";

/** The dependencies of calls to the operator service over HTTP. */
export interface ApiCallOptions {
  readonly identify: IdentifyOptions;
  readonly observe: (method: string, code: number, seconds: number) => void;
  readonly monotonicMs: () => number;
  readonly audit?: Pick<CallAudit, "begin">;
  /**
   * Reports whether this coordinator has every acknowledged write, see ServeOptions. Default:
   * always true.
   */
  readonly mayDeny?: (() => boolean) | undefined;
}

export type Bound = Context<{ Bindings: HttpBindings }>;

const SERVICE = "/forage.operator.v1.OperatorService";
/** A method that requires credentials, by which callers without credentials are refused. */
const ANY_METHOD = `${SERVICE}/PutObject`;

/**
 * Runs one call with the same checks and metrics as a gRPC client with the same token. `name` is
 * the method's name in camelCase, such as `listEvents`.
 */
export async function callAs<Request, Response>(
  c: Bound,
  name: string,
  request: Request,
  handler: (request: Request, context: CallContext) => Promise<Response>,
  options: ApiCallOptions,
): Promise<Response> {
  return runCall(contextOf(c, name, options.identify), request, handler, options);
}

/** Runs one call of an identified caller, with checks, metrics and audit records. */
export async function runCall<Request, Response>(
  context: CallContext,
  request: Request,
  handler: (request: Request, context: CallContext) => Promise<Response>,
  { observe, monotonicMs, audit, mayDeny }: Omit<ApiCallOptions, "identify">,
): Promise<Response> {
  const { method, caller, peer } = context;
  const startedMs = monotonicMs();
  const audited = audit?.begin(method, peer, false);
  let code = Code.OK;
  let message: string | undefined;
  try {
    audited?.identified(caller);
    assertMayCall(caller, method, request);
    audited?.requested(request);
    return await handler(request, context);
  } catch (thrown) {
    const error = denied(thrown, mayDeny);
    ({ code, details: message } = toServiceError(error));
    throw error;
  } finally {
    audited?.ended(code, message);
    observe(method, code, (monotonicMs() - startedMs) / 1000);
  }
}

/** Identifies the caller, and returns the context of the call. The permission is checked later. */
export function contextOf(c: Bound, name: string, how: IdentifyOptions): CallContext {
  const { remoteAddress = "" } = c.env.incoming.socket;
  return contextFor(c, name, callerOf(c, remoteAddress, how));
}

/** Returns the context of a call by this caller. */
export function contextFor(c: Bound, name: string, caller: Caller): CallContext {
  const { remoteAddress = "", remotePort = 0 } = c.env.incoming.socket;
  const peer = `${remoteAddress}:${remotePort}`;
  return { method: methodOf(name), caller, peer, signal: c.req.raw.signal };
}

/**
 * Refuses callers without valid credentials before their body is read, and limits the body of
 * others.
 */
export function limitBody(maxSize: number, how: IdentifyOptions): MiddlewareHandler {
  const tooLong = `the body must not be longer than ${maxSize} bytes`;
  const limited = bodyLimit({ maxSize, onError: (c) => failed(c, new CoordinatorError("INVALID", tooLong)) });
  return async (c, next) => {
    try {
      const { caller } = contextOf(c, "", how);
      if (caller.type === "anonymous") assertMayCall(caller, ANY_METHOD, undefined);
    } catch (error) {
      return failed(c, error);
    }
    return limited(c, next);
  };
}

/** Throws FAILED_PRECONDITION for a plain-text connection from another host. */
export function assertPrivate(c: Bound): void {
  const { socket } = c.env.incoming;
  const address = (socket.localAddress ?? "").replace(/^::ffff:/, "");
  if ("encrypted" in socket || address === "::1" || address.startsWith("127.")) return;
  throw new CoordinatorError(
    "FAILED_PRECONDITION",
    "secrets don't cross a network in plain text: set `http.tls: true` in the coordinator's configuration, or use gRPC",
  );
}

export async function bodyOf(c: Bound): Promise<unknown> {
  try {
    return await c.req.json();
  } catch {
    // The parser's error quotes the body, which may contain secrets.
    throw new CoordinatorError("INVALID", "the body must be JSON");
  }
}

const HTTP_STATUS: Partial<Record<Code, 400 | 401 | 403 | 404 | 409 | 412 | 429 | 503>> = {
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

/** Returns the error as JSON with the corresponding status. */
export function failed(c: Context, error: unknown): Response {
  const { code, details } = toServiceError(error);
  const violations = error instanceof CoordinatorError ? error.violations : [];
  const body = { code: Code[code], message: details, ...(violations.length > 0 && { violations }) };
  return c.json(body, HTTP_STATUS[code] ?? 500);
}

function methodOf(name: string): string {
  return `${SERVICE}/${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

function callerOf(c: Bound, remoteAddress: string, how: IdentifyOptions): Caller {
  const metadata = new Metadata();
  const header = c.req.header("authorization");
  if (header !== undefined) metadata.set("authorization", header);
  return identify(metadata, { type: "anonymous", remoteAddress }, how);
}
