import { STALE_HEADER } from "@forage/common/stale-header";
import {
  type Client,
  type ClientDuplexStream,
  type handleBidiStreamingCall,
  Metadata,
  type Server,
  type ServiceDefinition,
  type StatusObject,
  status,
} from "@grpc/grpc-js";
import type { BytesCall, BytesHandler } from "../rpc/bytes-handler.ts";
import { begin, type CallObserver } from "../rpc/call-observer.ts";
import { encodeCaller, FORWARDED_CALLER_KEY, FORWARDED_PEER_KEY } from "../rpc/forwarded-caller.ts";
import { takeRevision } from "../rpc/revision-trailer.ts";
import type { ServeOptions } from "../rpc/serve.ts";
import { toServiceError } from "../rpc/status.ts";
import { markOfLeader } from "./of-leader.ts";

/** A method that a follower can serve itself. */
export interface OwnMethod {
  readonly serve: BytesHandler;
  /**
   * Whether the method answers with a stream that begins with the present state, so that another
   * stream can continue it.
   */
  readonly isStream: boolean;
  /**
   * Whether the method may answer that something does not exist. By default such a call, which must
   * have one request, is passed on to the leader, because another coordinator may have acknowledged
   * the object.
   */
  readonly mayDeny?: boolean;
  /** Returns where a call with this first message is served. */
  readonly placeOf: (first: Buffer) => ServedAt;
}

/**
 * The place where a call is served. `leader-first` means here if the leader can't be reached; such
 * a call must only read, and have one request.
 */
export type ServedAt = "here" | "leader" | "leader-first";

export interface ForwardOptions extends CallObserver {
  readonly identify: ServeOptions["identify"];
  /** Returns the address of the client. */
  readonly peerOf: NonNullable<ServeOptions["peerOf"]>;
  /**
   * Returns a channel to the leader. Waits for a leader for the given time, or for the default
   * time.
   */
  readonly client: (signal: AbortSignal, patienceMs?: number) => Promise<Client>;
  /**
   * Aborts when another coordinator becomes the leader, which may be this one. Calls that the
   * former leader has received end with UNAVAILABLE.
   */
  readonly stopping: AbortSignal;
  /** The methods that this coordinator can serve itself, by path. Default: none. */
  readonly own?: ReadonlyMap<string, OwnMethod>;
  /**
   * Waits a moment until this coordinator has the leader's writes up to the revision. Default: does
   * not wait.
   */
  readonly reached?: (revision: number) => Promise<void>;
  /**
   * Returns the milliseconds since this coordinator's store was last known to be complete. Default:
   * 0.
   */
  readonly behindMs?: () => number;
  /**
   * Called with each call when the leader first answers it. Returns a function to call at its end.
   */
  readonly onPassed?: (path: string, call: BytesCall) => (() => void) | undefined;
}

type Upstream = ClientDuplexStream<Buffer, Buffer>;

/** Headers that belong to one connection, or that only this coordinator may set. */
const OWN_HEADERS = /^(:|grpc-|te$|content-type$|user-agent$|host$|forage-forwarded-)/;
/**
 * The longest time for which a call that can be served here waits for the leader. A connected
 * channel needs no time.
 */
const OWN_PATIENCE_MS = 300;

/**
 * Registers the service. Each call is passed on to the leader as bytes, unless it is served here.
 */
export function forward(server: Server, definition: ServiceDefinition, options: ForwardOptions): void {
  const methods = Object.entries(definition).map(([name, { path }]) => {
    const bytes = {
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    };
    // On the wire, a single message is a stream of one message.
    return [name, { path, requestStream: true, responseStream: true, ...bytes }] as const;
  });
  // One listener serves all calls, because every listener of a signal slows the addition of the
  // next.
  const open: OpenCalls = new Set();
  options.stopping.addEventListener("abort", () => stopAll(open), { once: true });
  const handlers = methods.map(([name, { path }]) => [name, handling(path, open, options)] as const);
  server.addService(Object.fromEntries(methods), Object.fromEntries(handlers));
}

type Finish = (result: Partial<StatusObject>) => void;
/** The calls that the leader has received. */
type OpenCalls = Set<Finish>;

function stopAll(open: OpenCalls): void {
  for (const finish of open)
    finish({ code: status.UNAVAILABLE, details: "the leader is changing: try again" });
}

function handling(
  path: string,
  calls: OpenCalls,
  options: ForwardOptions,
): handleBidiStreamingCall<Buffer, Buffer> {
  const own = options.own?.get(path);
  if (own === undefined) return (call) => pass(call, { path, calls, options });
  return (call) =>
    onFirst(call, (first) => {
      const place = own.placeOf(first);
      const toLeader = (): void => pass(call, { path, calls, options });
      if (place === "here") own.serve(own.mayDeny ? call : withoutDenial(call, toLeader), first);
      else if (place === "leader") toLeader();
      else {
        const run = (): void => {
          markStale(call, options);
          const unknown = (): void => endUnknown(call);
          own.serve(withoutDenial(call, unknown), first);
        };
        pass(call, { path, calls, options, instead: { run, evenLater: own.isStream } });
      }
    });
}

/** Returns the call with a different end: NOT_FOUND calls `deny` instead. */
function withoutDenial(call: BytesCall, deny: () => void): BytesCall {
  const emit = (event: string, ...values: unknown[]): boolean => {
    const [error] = values as [Partial<StatusObject> | undefined];
    if (event !== "error" || error?.code !== status.NOT_FOUND) return call.emit(event, ...values);
    deny();
    return true;
  };
  return new Proxy(call, {
    get: (target, name) => {
      if (name === "emit") return emit;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/**
 * Marks the answer in its headers as this coordinator's own. Has no effect once the leader has
 * answered.
 */
function markStale(call: BytesCall, { behindMs }: ForwardOptions): void {
  const metadata = new Metadata();
  metadata.set(STALE_HEADER, String(Math.round(behindMs?.() ?? 0)));
  call.sendMetadata(metadata);
}

function endUnknown(call: BytesCall): void {
  const details = "this coordinator has not read it, and the leader can't be reached: try again";
  call.emit("error", { code: status.UNAVAILABLE, details, message: details });
}

/**
 * Reads the first message, and puts it back. A call that ends before is passed to the leader as an
 * empty message, which refuses it.
 */
function onFirst(call: BytesCall, handle: (first: Buffer) => void): void {
  const onData = (first: Buffer): void => {
    call.off("end", onEnd);
    call.pause();
    call.unshift(first);
    handle(first);
  };
  const onEnd = (): void => {
    call.off("data", onData);
    call.emit("error", { code: status.INTERNAL, details: "the call has no message" });
  };
  call.once("end", onEnd);
  call.once("data", onData);
}

interface Passing {
  readonly path: string;
  readonly calls: OpenCalls;
  readonly options: ForwardOptions;
  /**
   * Serves the call here instead. `evenLater` permits this even after the leader has sent messages.
   */
  readonly instead?: { readonly run: () => void; readonly evenLater: boolean };
}

/** Passes the call on to the leader. */
function pass(call: BytesCall, { path, calls, options, instead }: Passing): void {
  const gone = new AbortController();
  let upstream: Upstream | undefined;
  let ended: (() => void) | undefined;
  let isAnswered = false;
  const leave = (): void => {
    calls.delete(finish);
    gone.abort();
    upstream?.cancel();
    ended?.();
    ended = undefined;
  };
  const done = begin(path, options);
  const finish = once((result: Partial<StatusObject>) => {
    const isOver = gone.signal.aborted;
    leave();
    const code = result.code ?? status.OK;
    const isLost = code === status.UNAVAILABLE && !isOver;
    if (isLost && instead !== undefined && (instead.evenLater || !isAnswered)) return instead.run();
    done(code);
    if (code === status.OK) end(call, result, options);
    else call.emit("error", { ...(upstream ? markOfLeader(result) : result), message: result.details });
  });
  call.on("cancelled", leave);
  call.on("error", leave);
  open(call, path, gone.signal, options, instead === undefined ? undefined : OWN_PATIENCE_MS)
    .then((opened) => {
      upstream = opened;
      calls.add(finish);
      opened.once("data", () => {
        isAnswered = true;
        if (!gone.signal.aborted) ended = options.onPassed?.(path, call);
      });
      connect(call, opened, gone.signal, finish);
      if (gone.signal.aborted) leave();
    })
    .catch((error: unknown) => finish(toServiceError(error)));
}

/**
 * Ends the call once this coordinator has what the call has written, so that the caller's next call
 * can be served here.
 */
function end(call: BytesCall, { metadata }: Partial<StatusObject>, { reached }: ForwardOptions): void {
  const revision = takeRevision(metadata);
  if (revision === undefined || reached === undefined) call.end(metadata);
  else void reached(revision).finally(() => call.end(metadata));
}

async function open(
  call: BytesCall,
  path: string,
  signal: AbortSignal,
  options: ForwardOptions,
  patienceMs: number | undefined,
): Promise<Upstream> {
  const metadata = forwardedMetadata(call, options);
  const client = await options.client(signal, patienceMs);
  const deadline = call.getDeadline();
  return client.makeBidiStreamRequest(path, asIs, asIs, metadata, { deadline });
}

/**
 * Returns the metadata for the leader: the caller's own headers, its address, and its identity
 * unless a token is among the headers.
 */
function forwardedMetadata(call: BytesCall, { identify, peerOf }: ForwardOptions): Metadata {
  const metadata = new Metadata();
  for (const key of Object.keys(call.metadata.getMap())) {
    if (OWN_HEADERS.test(key)) continue;
    for (const value of call.metadata.get(key)) metadata.add(key, value);
  }
  const caller = encodeCaller(identify(call));
  if (caller !== undefined) metadata.set(FORWARDED_CALLER_KEY, caller);
  metadata.set(FORWARDED_PEER_KEY, peerOf(call));
  return metadata;
}

function connect(call: BytesCall, upstream: Upstream, signal: AbortSignal, finish: Finish): void {
  let ended = false;
  let result: StatusObject | undefined;
  const settle = (): void => {
    if (ended && result !== undefined) finish(result);
  };
  upstream.on("metadata", (metadata) => call.sendMetadata(metadata));
  upstream.on("status", (received) => {
    // Only this side cancels calls, but a leader that ends abruptly resets its streams with the
    // same code.
    const isReset = received.code === status.CANCELLED && !signal.aborted;
    result = isReset ? { ...received, code: status.UNAVAILABLE } : received;
    settle();
  });
  upstream.on("end", () => {
    ended = true;
    settle();
  });
  // The status contains the same information.
  upstream.on("error", () => {
    ended = true;
    settle();
  });
  flow(upstream, call);
  flow(call, upstream);
  call.on("end", () => upstream.end());
}

/** Copies messages, and stops reading while the other side does not accept any. */
function flow(from: BytesCall | Upstream, to: BytesCall | Upstream): void {
  from.on("data", (message: Buffer) => {
    if (!to.writable || to.write(message)) return;
    from.pause();
    to.once("drain", () => from.resume());
  });
  // Reading the first message has paused the stream.
  from.resume();
}

function once<T>(run: (value: T) => void): (value: T) => void {
  let isDone = false;
  return (value) => {
    if (isDone) return;
    isDone = true;
    run(value);
  };
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
