import type { ServerHttp2Stream } from "node:http2";
import type { PeeredCall } from "@forage/identity/tls-server";
import type {
  handleBidiStreamingCall,
  handleClientStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  Metadata,
  Server,
  ServerDuplexStream,
  ServerWritableStream,
  ServiceDefinition,
  ServiceError,
  UntypedHandleCall,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { assertMayCall } from "./access.ts";
import type { AuditedCall, CallAudit } from "./call-audit.ts";
import { begin, type CallObserver } from "./call-observer.ts";
import type { CallContext, Caller } from "./caller.ts";
import { directWriter, Framer } from "./direct-writer.ts";
import type { FramesHandler } from "./frames.ts";
import type { Handlers, Method } from "./handler.ts";
import { denied } from "./may-deny.ts";
import { OpenCalls } from "./open-calls.ts";
import type { PushHandler } from "./push.ts";
import { revisionTrailer } from "./revision-trailer.ts";
import { toServiceError } from "./status.ts";
import { drained, requestsOf, untilAccepted } from "./stream.ts";
import type { TokenWatch } from "./token-watch.ts";
import type { UnknownFields } from "./unknown-fields.ts";

export type { Handler, Handlers, Method } from "./handler.ts";

/** The part of a call by which its caller is identified. */
export type IdentifiableCall = PeeredCall & {
  readonly metadata: Metadata;
  /** Makes the windows for the request this large. Undefined for calls of grpc-js. */
  widenWindow?(bytes: number): void;
};

export interface ServeOptions extends CallObserver {
  /** Identifies the caller by the credentials in the transport and the metadata. */
  readonly identify: (call: IdentifiableCall) => Caller;
  /** Returns the address of the client. Default: the address of the connection's peer. */
  readonly peerOf?: (call: IdentifiableCall) => string;
  /** Ends streams when the token of their caller ends. */
  readonly tokens?: Pick<TokenWatch, "watch">;
  /** Aborts when the server stops. Open streams then end with OK. */
  readonly stopping: AbortSignal;
  /** Refuses requests with fields unknown to this version, after the caller was authorized. */
  readonly unknownFields?: UnknownFields;
  /** Records the calls that change or reveal something, and refused calls. */
  readonly audit?: Pick<CallAudit, "begin">;
  /**
   * Returns the HTTP/2 stream of a call by its metadata. Pushed messages are then written directly
   * to it.
   */
  readonly streamOf?: (metadata: Metadata) => ServerHttp2Stream | undefined;
  /**
   * The bytes that an authorized caller may send to a stream of requests before the handler reads
   * them, for each stream and for the connection. Default: the 64 KiB of HTTP/2, with which large
   * uploads wait for a round trip all the time.
   */
  readonly receiveWindowBytes?: number;
  /**
   * Reports whether this coordinator has every acknowledged write. If not, no call is answered with
   * NOT_FOUND. Default: always true.
   */
  readonly mayDeny?: () => boolean;
  /**
   * Returns the store's newest revision, for coordinators that pass calls on. Default: it is not
   * sent.
   */
  readonly revision?: () => number;
}

/**
 * Registers a service. Authentication, authorization, logging and error mapping of every call
 * happen here and nowhere else.
 */
export function serve<S extends ServiceDefinition>(
  server: Server,
  definition: S,
  handlers: Handlers<S>,
  options: ServeOptions,
): void {
  const implementation: Record<string, UntypedHandleCall> = {};
  for (const [name, method] of Object.entries(definition) as [keyof S & string, Method][]) {
    implementation[name] = handlerOf(method, handlers[name] as AnyHandler, options);
  }
  const served = options.unknownFields?.checked(definition) ?? definition;
  server.addService(served, implementation as UntypedServiceImplementation);
}

/** Returns the handler of one method for calls with decoded messages. */
export function handlerOf(method: Method, handler: AnyHandler, options: ServeOptions): UntypedHandleCall {
  if ("push" in handler) return pushing(method, handler, options);
  if ("frames" in handler)
    return streaming(method, handler.frames as StreamHandler, options, framesWriter(method, options));
  if (method.responseStream) return streaming(method, handler as StreamHandler, options);
  if (method.requestStream) return receiving(method, handler as UnaryHandler, options);
  return unary(method, handler as UnaryHandler, options);
}

export type AnyHandler =
  | UnaryHandler
  | StreamHandler
  | PushHandler<unknown, unknown>
  | FramesHandler<unknown>;
type UnaryHandler = (request: unknown, context: CallContext) => Promise<unknown>;
type StreamHandler = (request: unknown, context: CallContext) => AsyncIterable<unknown>;

function unary(method: Method, handler: UnaryHandler, options: ServeOptions): UntypedHandleCall {
  const calls = new OpenCalls(options.stopping);
  const handle: handleUnaryCall<unknown, unknown> = (call, callback) => {
    const done = begin(method.path, options);
    const { signal, abort, over } = calls.open();
    call.on("cancelled", abort);
    const work = { method: method.path, request: call.request, signal, isStream: false };
    identifyAndRun(call, work, options, (context) => handler(call.request, context))
      .finally(over)
      .then(
        (response) => {
          done(0);
          callback(null, response, revisionTrailer(method.path, call.metadata, options.revision));
        },
        (error: unknown) => callback(fail(error, done, options)),
      );
  };
  return handle;
}

/** Serves a method with a stream of requests and one response. */
function receiving(method: Method, handler: UnaryHandler, options: ServeOptions): UntypedHandleCall {
  const calls = new OpenCalls(options.stopping);
  const handle: handleClientStreamingCall<unknown, unknown> = (call, callback) => {
    const done = begin(method.path, options);
    const { signal, abort: leave, over: close } = calls.open();
    call.on("cancelled", leave);
    call.on("error", leave);
    let over = false;
    const finish = (error: unknown, response?: unknown): void => {
      if (over) return;
      over = true;
      close();
      if (error === undefined) done(0);
      callback(error === undefined ? null : fail(error, done, options), response);
    };
    const audited = options.audit?.begin(method.path, peerOf(call, options), true);
    const requests = requestsOf(call, signal, requestCheck(options, audited));
    const work = { method: method.path, request: requests, signal, audited, isStream: true };
    identifyAndRun(call, work, options, async (context) => {
      widenWindow(call, options);
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

function widenWindow(call: IdentifiableCall, { receiveWindowBytes, streamOf }: ServeOptions): void {
  if (receiveWindowBytes === undefined) return;
  call.widenWindow?.(receiveWindowBytes);
  const session = streamOf?.(call.metadata)?.session;
  if (session === undefined || session.destroyed) return;
  session.settings({ initialWindowSize: receiveWindowBytes });
  session.setLocalWindowSize(receiveWindowBytes);
}

function streaming(
  method: Method,
  handler: StreamHandler,
  options: ServeOptions,
  writerOf = messageWriter,
): UntypedHandleCall {
  const calls = new OpenCalls(options.stopping);
  const handle = (
    call: ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>,
  ): void => {
    const done = begin(method.path, options);
    const { signal, abort, over: close } = calls.open();
    call.on("cancelled", abort);
    call.on("error", abort);
    const audited = options.audit?.begin(method.path, peerOf(call, options), true);
    const input = method.requestStream
      ? requestsOf(call as ServerDuplexStream<unknown, unknown>, signal, requestCheck(options, audited))
      : undefined;
    const request = input ?? (call as ServerWritableStream<unknown, unknown>).request;
    let over = false;
    const finish = (error?: unknown): void => {
      if (over) return;
      over = true;
      close();
      if (error === undefined) {
        done(0);
        call.end();
      } else call.emit("error", fail(error, done, options));
    };
    const sendNow = (message: unknown): boolean => {
      if (over || signal.aborted || call.writableLength > 0) return false;
      call.write(message);
      return true;
    };
    const work = { method: method.path, request, signal, audited, isStream: true };
    identifyAndRun(call, { ...work, ...(input && { sendNow }) }, options, async (context) => {
      const unwatch = options.tokens?.watch(context.caller, finish);
      const write = writerOf(call, signal);
      try {
        for await (const response of handler(request, context)) {
          if (signal.aborted) break;
          await write(response);
        }
      } finally {
        unwatch?.();
      }
    }).then(
      () => finish(),
      // A stream that ends because the server stops has sent only correct messages, so it ends
      // without an error, and the client reconnects.
      (error: unknown) => finish(signal.aborted ? undefined : error),
    );
  };
  return handle as handleServerStreamingCall<unknown, unknown> & handleBidiStreamingCall<unknown, unknown>;
}

/**
 * Returns a function that writes the messages of a call. Each write resolves when the next one may
 * start.
 */
type WriterOf = (
  call: ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>,
  signal: AbortSignal,
) => (message: unknown) => Promise<void>;

const messageWriter: WriterOf = (call, signal) => async (message) => {
  if (!call.write(message)) await drained(call, signal);
};

/** Writes encoded messages; all streams share one framed copy of each. */
function framesWriter(method: Method, options: ServeOptions): WriterOf {
  const framer = new Framer();
  return (call, signal) => {
    const stream = options.streamOf?.(call.metadata);
    const direct = stream && directWriter(call, stream, framer);
    const write = messageWriter(call, signal);
    return async (bytes) => {
      if (!(bytes instanceof Uint8Array)) throw new TypeError(`${method.path} yields encoded messages only`);
      if (direct === undefined) await write(method.responseDeserialize(Buffer.from(bytes)));
      else await untilAccepted((onAccepted) => direct(bytes, onAccepted), signal);
    };
  };
}

/** Returns a function that records the first request of a stream, and throws at the first one with unknown fields. */
function requestCheck({ unknownFields }: ServeOptions, audited?: AuditedCall): (request: unknown) => void {
  let isFirst = true;
  return (request) => {
    if (isFirst) audited?.requested(request);
    isFirst = false;
    unknownFields?.assertKnown(request);
  };
}

function pushing(
  method: Method,
  handler: PushHandler<unknown, unknown>,
  options: ServeOptions,
): UntypedHandleCall {
  // One listener serves all streams: every listener of an AbortSignal slows the addition and
  // removal of the next.
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
      } else call.emit("error", fail(error, done, options));
    };
    const end = (): void => finish();
    call.on("cancelled", end);
    call.on("error", end);
    open.add(end);
    try {
      const caller = options.identify(call);
      assertMayCall(caller, method.path, call.request);
      const context = { method: method.path, caller, peer: peerOf(call, options) };
      const stream = options.streamOf?.(call.metadata);
      const write = stream && directWriter(call, stream, framer);
      const send = (message: unknown, onAccepted: () => void): void => {
        if (write === undefined) call.write(message, onAccepted);
        else if (!over) write(method.responseSerialize(message), onAccepted);
      };
      close = handler.push(call.request, context, { send, fail: finish });
      unwatch = options.tokens?.watch(caller, finish);
      // The call may have failed before `push` returned.
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

function fail(
  error: unknown,
  done: (code: number, error?: unknown) => void,
  { mayDeny }: ServeOptions,
): ServiceError {
  const serviceError = toServiceError(denied(error, mayDeny));
  done(serviceError.code, error);
  return serviceError;
}

interface Work {
  readonly method: string;
  /** The request, or the stream of requests. */
  readonly request: unknown;
  readonly signal: AbortSignal;
  readonly isStream: boolean;
  readonly audited?: AuditedCall | undefined;
  readonly sendNow?: CallContext["sendNow"];
}

/** Is not an async function, which would take 500 bytes for as long as a stream lasts. */
function identifyAndRun<T>(
  call: IdentifiableCall,
  { method, request, signal, isStream, sendNow, ...given }: Work,
  options: ServeOptions,
  run: (context: CallContext) => Promise<T>,
): Promise<T> {
  const peer = peerOf(call, options);
  const audited = given.audited ?? options.audit?.begin(method, peer, isStream);
  const begin = (): Promise<T> => {
    const caller = options.identify(call);
    audited?.identified(caller);
    assertMayCall(caller, method, request);
    options.unknownFields?.assertKnown(request);
    // For a stream of requests, the first message is recorded when it is read.
    if (!isIterable(request)) audited?.requested(request);
    const messageRefused = audited && ((why: string) => audited.messageRefused(why));
    return run({ method, caller, peer, signal, messageRefused, sendNow });
  };
  return promiseOf(begin).then(
    (result) => {
      audited?.ended(0);
      return result;
    },
    (error: unknown) => {
      const { code, details } = toServiceError(error);
      audited?.ended(code, details);
      throw error;
    },
  );
}

/** Returns the promise of a function, or one that rejects with what the function throws. */
function promiseOf<T>(run: () => Promise<T>): Promise<T> {
  try {
    return run();
  } catch (error) {
    return Promise.reject(error);
  }
}

function peerOf(call: IdentifiableCall, options: ServeOptions): string {
  return options.peerOf?.(call) ?? call.getPeer();
}

function isIterable(request: unknown): boolean {
  return typeof request === "object" && request !== null && Symbol.asyncIterator in request;
}
