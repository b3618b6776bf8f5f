import type { ServerHttp2Stream } from "node:http2";
import type { PeeredCall } from "@forage/identity/tls-server";
import type {
  handleBidiStreamingCall,
  handleClientStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  Metadata,
  MethodDefinition,
  Server,
  ServerDuplexStream,
  ServerWritableStream,
  ServiceDefinition,
  ServiceError,
  UntypedHandleCall,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { status } from "@grpc/grpc-js";
import type { Logger } from "pino";
import { assertMayCall } from "./access.ts";
import type { CallContext, Caller } from "./caller.ts";
import { directWriter, Framer } from "./direct-writer.ts";
import type { PushHandler } from "./push.ts";
import { toServiceError } from "./status.ts";
import { drained, requestsOf } from "./stream.ts";
import type { TokenWatch } from "./token-watch.ts";
import type { UnknownFields } from "./unknown-fields.ts";

type Method = MethodDefinition<unknown, unknown>;

/** A handler in our own terms: async functions and generators with a context, in place of call objects and callbacks. */
export type Handler<D> = D extends {
  requestStream: infer RequestStream;
  responseStream: infer ResponseStream;
}
  ? D extends {
      requestDeserialize: (bytes: Buffer) => infer Request;
      responseDeserialize: (bytes: Buffer) => infer Response;
    }
    ? RequestStream extends true
      ? ResponseStream extends true
        ? (requests: AsyncIterable<Request>, context: CallContext) => AsyncIterable<Response>
        : (requests: AsyncIterable<Request>, context: CallContext) => Promise<Response>
      : ResponseStream extends true
        ?
            | ((request: Request, context: CallContext) => AsyncIterable<Response>)
            | PushHandler<Request, Response>
        : (request: Request, context: CallContext) => Promise<Response>
    : never
  : never;

export type Handlers<S> = { readonly [Name in keyof S]: Handler<S[Name]> };

/** The part of a call that identifies its caller. */
export type IdentifiableCall = PeeredCall & { readonly metadata: Metadata };

export interface ServeOptions {
  /** Identifies the caller by the proofs in the transport and the metadata. */
  readonly identify: (call: IdentifiableCall) => Caller;
  readonly log: Logger;
  /** Ends streams whose caller's token ends. */
  readonly tokens?: Pick<TokenWatch, "watch">;
  /** Aborted when the server stops: open streams then end with OK. */
  readonly stopping: AbortSignal;
  /** Refuses requests with fields that this version does not know, once the caller may make the call. */
  readonly unknownFields?: UnknownFields;
  readonly observe?: (method: string, code: number, seconds: number) => void;
  /** Returns the HTTP/2 stream of a call by its metadata. Pushed messages are then written to it directly. */
  readonly streamOf?: (metadata: Metadata) => ServerHttp2Stream | undefined;
  /** Monotonic, in milliseconds. */
  readonly monotonicMs: () => number;
}

/** Registers a service; every call passes authentication, authorisation, logging and error mapping here and nowhere else. */
export function serve<S extends ServiceDefinition>(
  server: Server,
  definition: S,
  handlers: Handlers<S>,
  options: ServeOptions,
): void {
  const implementation: Record<string, UntypedHandleCall> = {};
  for (const [name, method] of Object.entries(definition) as [keyof S & string, Method][]) {
    const handler = handlers[name] as UnaryHandler | StreamHandler | PushHandler<unknown, unknown>;
    if ("push" in handler) implementation[name] = pushing(method, handler, options);
    else if (method.responseStream)
      implementation[name] = streaming(method, handler as StreamHandler, options);
    else if (method.requestStream) implementation[name] = receiving(method, handler as UnaryHandler, options);
    else implementation[name] = unary(method, handler as UnaryHandler, options);
  }
  const served = options.unknownFields?.checked(definition) ?? definition;
  server.addService(served, implementation as UntypedServiceImplementation);
}

type UnaryHandler = (request: unknown, context: CallContext) => Promise<unknown>;
type StreamHandler = (request: unknown, context: CallContext) => AsyncIterable<unknown>;

function unary(method: Method, handler: UnaryHandler, options: ServeOptions): UntypedHandleCall {
  const handle: handleUnaryCall<unknown, unknown> = (call, callback) => {
    const done = begin(method.path, options);
    const gone = new AbortController();
    call.on("cancelled", () => gone.abort());
    const signal = AbortSignal.any([gone.signal, options.stopping]);
    identifyAndRun(call, method.path, call.request, signal, options, (context) =>
      handler(call.request, context),
    ).then(
      (response) => {
        done(0);
        callback(null, response);
      },
      (error: unknown) => callback(fail(error, done)),
    );
  };
  return handle;
}

/** Serves a method with a stream of requests and one response. */
function receiving(method: Method, handler: UnaryHandler, options: ServeOptions): UntypedHandleCall {
  const handle: handleClientStreamingCall<unknown, unknown> = (call, callback) => {
    const done = begin(method.path, options);
    const gone = new AbortController();
    const leave = (): void => gone.abort();
    call.on("cancelled", leave);
    call.on("error", leave);
    const signal = AbortSignal.any([gone.signal, options.stopping]);
    let over = false;
    const finish = (error: unknown, response?: unknown): void => {
      if (over) return;
      over = true;
      if (error === undefined) done(0);
      callback(error === undefined ? null : fail(error, done), response);
    };
    const requests = known(requestsOf(call, signal), options);
    identifyAndRun(call, method.path, requests, signal, options, async (context) => {
      const unwatch = options.tokens?.watch(context.caller, (error) => {
        finish(error);
        leave();
      });
      try {
        return await handler(requests, context);
      } finally {
        unwatch?.();
      }
    }).then(
      (response) => finish(undefined, response),
      (error: unknown) => finish(error),
    );
  };
  return handle;
}

function streaming(method: Method, handler: StreamHandler, options: ServeOptions): UntypedHandleCall {
  const handle = (
    call: ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>,
  ): void => {
    const done = begin(method.path, options);
    const gone = new AbortController();
    call.on("cancelled", () => gone.abort());
    call.on("error", () => gone.abort());
    const signal = AbortSignal.any([gone.signal, options.stopping]);
    const input = method.requestStream
      ? known(requestsOf(call as ServerDuplexStream<unknown, unknown>, signal), options)
      : undefined;
    const request = input ?? (call as ServerWritableStream<unknown, unknown>).request;
    let over = false;
    const finish = (error?: unknown): void => {
      if (over) return;
      over = true;
      if (error === undefined) {
        done(0);
        call.end();
      } else call.emit("error", fail(error, done));
    };
    identifyAndRun(call, method.path, request, signal, options, async (context) => {
      const unwatch = options.tokens?.watch(context.caller, finish);
      try {
        for await (const response of handler(request, context)) {
          if (signal.aborted) break;
          if (!call.write(response)) await drained(call, signal);
        }
      } finally {
        unwatch?.();
      }
    }).then(
      () => finish(),
      // A stream that a stopping server cuts was correct so far, so it ends without an error, and clients reconnect.
      (error: unknown) => finish(options.stopping.aborted || gone.signal.aborted ? undefined : error),
    );
  };
  return handle as handleServerStreamingCall<unknown, unknown> & handleBidiStreamingCall<unknown, unknown>;
}

/** Ends with the error of the first request with unknown fields. */
async function* known<T>(
  requests: AsyncIterable<T>,
  { unknownFields }: ServeOptions,
): AsyncGenerator<T, void, undefined> {
  for await (const request of requests) {
    unknownFields?.assertKnown(request);
    yield request;
  }
}

function pushing(
  method: Method,
  handler: PushHandler<unknown, unknown>,
  options: ServeOptions,
): UntypedHandleCall {
  // One listener for all: each that an AbortSignal has makes adding and removing the next slower.
  const open = new Set<() => void>();
  const framer = new Framer();
  const endAll = (): void => {
    for (const end of open) end();
  };
  options.stopping.addEventListener("abort", endAll, { once: true });
  const handle: handleServerStreamingCall<unknown, unknown> = (call) => {
    const done = begin(method.path, options);
    let close: (() => void) | undefined;
    let unwatch: (() => void) | undefined;
    let over = false;
    const finish = (error?: unknown): void => {
      if (over) return;
      over = true;
      open.delete(end);
      close?.();
      unwatch?.();
      if (error === undefined) {
        done(0);
        call.end();
      } else call.emit("error", fail(error, done));
    };
    const end = (): void => finish();
    call.on("cancelled", end);
    call.on("error", end);
    open.add(end);
    try {
      const caller = options.identify(call);
      assertMayCall(caller, method.path, call.request);
      const context = { method: method.path, caller, peer: call.getPeer() };
      const stream = options.streamOf?.(call.metadata);
      const write = stream && directWriter(call, stream, framer);
      const send = (message: unknown, taken: () => void): void => {
        if (write === undefined) call.write(message, taken);
        else if (!over) write(method.responseSerialize(message), taken);
      };
      close = handler.push(call.request, context, { send, fail: finish });
      unwatch = options.tokens?.watch(caller, finish);
      // It may have failed before it returned.
      if (over) {
        close();
        unwatch?.();
      } else if (options.stopping.aborted) end();
    } catch (error) {
      finish(error);
    }
  };
  return handle;
}

function fail(error: unknown, done: (code: number, error?: unknown) => void): ServiceError {
  const serviceError = toServiceError(error);
  done(serviceError.code, error);
  return serviceError;
}

async function identifyAndRun<T>(
  call: IdentifiableCall,
  method: string,
  request: unknown,
  signal: AbortSignal,
  options: ServeOptions,
  run: (context: CallContext) => Promise<T>,
): Promise<T> {
  const caller = options.identify(call);
  assertMayCall(caller, method, request);
  options.unknownFields?.assertKnown(request);
  return run({ method, caller, peer: call.getPeer(), signal });
}

function begin(method: string, options: ServeOptions): (code: number, error?: unknown) => void {
  const startedMs = options.monotonicMs();
  return (code, error) => {
    const durationMs = options.monotonicMs() - startedMs;
    options.observe?.(method, code, durationMs / 1000);
    if (code === status.INTERNAL)
      options.log.error({ event: "call-failed", method, err: error }, "call failed");
    else options.log.debug({ method, code, durationMs }, "call");
  };
}
