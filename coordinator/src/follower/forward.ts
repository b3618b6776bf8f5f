import {
  type Client,
  type ClientDuplexStream,
  type handleBidiStreamingCall,
  Metadata,
  type Server,
  type ServerDuplexStream,
  type ServiceDefinition,
  type StatusObject,
  status,
} from "@grpc/grpc-js";
import { begin, type CallObserver } from "../rpc/call-observer.ts";
import { encodeCaller, FORWARDED_CALLER_KEY, FORWARDED_PEER_KEY } from "../rpc/forwarded-caller.ts";
import type { ServeOptions } from "../rpc/serve.ts";
import { toServiceError } from "../rpc/status.ts";
import { markOfLeader } from "./of-leader.ts";

export interface ForwardOptions extends CallObserver {
  readonly identify: ServeOptions["identify"];
  /** Returns the address of the client. */
  readonly peerOf: NonNullable<ServeOptions["peerOf"]>;
  /** Returns a channel to the coordinator that leads. */
  readonly client: (signal: AbortSignal) => Promise<Client>;
  /** Aborted when this coordinator stops or leads: calls that were passed on then end with UNAVAILABLE. */
  readonly stopping: AbortSignal;
}

type Bytes = ServerDuplexStream<Buffer, Buffer>;
type Upstream = ClientDuplexStream<Buffer, Buffer>;

/** Headers that belong to one connection, or that only this coordinator may set. */
const OWN_HEADERS = /^(:|grpc-|te$|content-type$|user-agent$|host$|forage-forwarded-)/;

/** Registers the service so that each call is passed on to the coordinator that leads, as bytes. */
export function forward(server: Server, definition: ServiceDefinition, options: ForwardOptions): void {
  const methods = Object.entries(definition).map(([name, { path }]) => {
    const bytes = {
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    };
    // On the wire, one message is a stream of one message.
    return [name, { path, requestStream: true, responseStream: true, ...bytes }] as const;
  });
  // One listener for all calls, because each one of a signal makes the next slower.
  const open: OpenCalls = new Set();
  options.stopping.addEventListener("abort", () => stopAll(open), { once: true });
  const handlers = methods.map(([name, { path }]) => [name, forwarding(path, open, options)] as const);
  server.addService(Object.fromEntries(methods), Object.fromEntries(handlers));
}

type Finish = (result: Partial<StatusObject>) => void;
type OpenCalls = Set<Finish>;

function stopAll(open: OpenCalls): void {
  for (const finish of open)
    finish({ code: status.UNAVAILABLE, details: "the coordinator that leads changes: try again" });
}

function forwarding(
  path: string,
  calls: OpenCalls,
  options: ForwardOptions,
): handleBidiStreamingCall<Buffer, Buffer> {
  return (call) => {
    const gone = new AbortController();
    let upstream: Upstream | undefined;
    const leave = (): void => {
      calls.delete(finish);
      gone.abort();
      upstream?.cancel();
    };
    const done = begin(path, options);
    const finish = once((result: Partial<StatusObject>) => {
      leave();
      done(result.code ?? status.OK);
      if ((result.code ?? status.OK) === status.OK) call.end(result.metadata);
      else call.emit("error", { ...(upstream ? markOfLeader(result) : result), message: result.details });
    });
    call.on("cancelled", leave);
    call.on("error", leave);
    calls.add(finish);
    if (options.stopping.aborted) stopAll(calls);
    open(call, path, gone.signal, options)
      .then((opened) => {
        upstream = opened;
        connect(call, opened, gone.signal, finish);
        if (gone.signal.aborted) opened.cancel();
      })
      .catch((error: unknown) => finish(toServiceError(error)));
  };
}

async function open(
  call: Bytes,
  path: string,
  signal: AbortSignal,
  options: ForwardOptions,
): Promise<Upstream> {
  const metadata = forwardedMetadata(call, options);
  const client = await options.client(signal);
  const deadline = call.getDeadline();
  return client.makeBidiStreamRequest(path, asIs, asIs, metadata, { deadline });
}

/** Passes on the caller's own headers, the address that the call comes from and, unless a token is among the headers, who the caller is. */
function forwardedMetadata(call: Bytes, { identify, peerOf }: ForwardOptions): Metadata {
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

function connect(call: Bytes, upstream: Upstream, signal: AbortSignal, finish: Finish): void {
  let ended = false;
  let result: StatusObject | undefined;
  const settle = (): void => {
    if (ended && result !== undefined) finish(result);
  };
  upstream.on("metadata", (metadata) => call.sendMetadata(metadata));
  upstream.on("status", (received) => {
    // Only this side cancels calls. A leader that ends at once resets its streams with the same code.
    const isReset = received.code === status.CANCELLED && !signal.aborted;
    result = isReset ? { ...received, code: status.UNAVAILABLE } : received;
    settle();
  });
  upstream.on("end", () => {
    ended = true;
    settle();
  });
  // The status has the same content.
  upstream.on("error", () => {
    ended = true;
    settle();
  });
  flow(upstream, call);
  flow(call, upstream);
  call.on("end", () => upstream.end());
}

/** Writes what is read, and stops reading while the other side takes nothing. */
function flow(from: Bytes | Upstream, to: Bytes | Upstream): void {
  from.on("data", (message: Buffer) => {
    if (!to.writable || to.write(message)) return;
    from.pause();
    to.once("drain", () => from.resume());
  });
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
