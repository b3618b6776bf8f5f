import { messageOf } from "@forage/common/message-of";
import {
  type ServerDuplexStream,
  type ServiceDefinition,
  type ServiceError,
  status,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { type AnyHandler, type Handlers, handlerOf, type Method, type ServeOptions } from "./serve.ts";

export type BytesCall = ServerDuplexStream<Buffer, Buffer>;

/**
 * Serves a call whose messages are bytes. `request` is given for methods without a stream of
 * requests.
 */
export type BytesHandler = (call: BytesCall, request: Buffer | undefined) => void;

/**
 * Returns handlers by the paths of their methods. Every call passes the same checks as in `serve`.
 */
export function bytesHandlers<S extends ServiceDefinition>(
  definition: S,
  handlers: Partial<Handlers<S>>,
  options: ServeOptions,
): ReadonlyMap<string, BytesHandler> {
  const checked: ServiceDefinition = options.unknownFields?.checked(definition) ?? definition;
  return new Map(
    Object.entries(handlers).flatMap(([name, handler]) => {
      const method = checked[name];
      if (method === undefined || handler === undefined) return [];
      return [[method.path, bytesHandler(method, handler as AnyHandler, options)] as const];
    }),
  );
}

function bytesHandler(method: Method, handler: AnyHandler, options: ServeOptions): BytesHandler {
  const handle = handlerOf(method, handler, options);
  return (call, bytes) => {
    try {
      const request = method.requestStream ? undefined : method.requestDeserialize(bytes ?? Buffer.alloc(0));
      run(handle, decodedCall(call, method, request), call, method);
    } catch (error) {
      call.emit("error", undecodable(error));
    }
  };
}

/** Calls a handler of any of the four kinds of methods. */
function run(handle: UntypedHandleCall, decoded: BytesCall, call: BytesCall, method: Method): void {
  const finish = (error: Partial<ServiceError> | null, response?: unknown): void => {
    if (error !== null) call.emit("error", error);
    else {
      call.write(method.responseSerialize(response));
      call.end();
    }
  };
  (handle as (call: unknown, callback: typeof finish) => void)(decoded, finish);
}

/** Wraps a call with encoded messages as a call with decoded ones. */
function decodedCall(call: BytesCall, method: Method, request: unknown): BytesCall {
  const decoding = (listener: (message: unknown) => void) => (bytes: Buffer) => {
    let message: unknown;
    try {
      message = method.requestDeserialize(bytes);
    } catch (error) {
      call.emit("error", undecodable(error));
      return;
    }
    listener(message);
  };
  const own: Readonly<Record<string, unknown>> = {
    request,
    write: (message: unknown, onAccepted?: () => void) =>
      call.write(method.responseSerialize(message), onAccepted),
    on: (event: string, listener: (message: unknown) => void) =>
      call.on(event, event === "data" ? decoding(listener) : listener),
  };
  return new Proxy(call, {
    get: (target, name) => {
      if (typeof name === "string" && Object.hasOwn(own, name)) return own[name];
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function undecodable(error: unknown): Partial<ServiceError> {
  return { code: status.INTERNAL, details: `the request can't be decoded: ${messageOf(error)}` };
}
