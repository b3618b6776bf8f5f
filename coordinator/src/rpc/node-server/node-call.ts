import { messageOf } from "@forage/common/message-of";
import type { PeeredCall } from "@forage/identity/tls-server";
import { Metadata, type ServiceError, type StatusObject, status } from "@grpc/grpc-js";
import { CoordinatorError } from "../../errors.ts";
import type { RequestHead } from "../../http2/request-head.ts";
import type { ServerStream, StreamUser } from "../../http2/server-stream.ts";
import { OK_TRAILERS, responseHead, timeoutMsOf, trailers } from "../push-server/grpc-head.ts";
import { toServiceError } from "../status.ts";
import { type CallHost, CallStream } from "./call-stream.ts";
import { MessageReader } from "./message-reader.ts";
import type { ServedMethod } from "./served-methods.ts";

export interface NodeCallOptions {
  readonly served: ServedMethod;
  readonly peer: PeeredCall;
  readonly nowMs: () => number;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  readonly maxMessageBytes: number;
  /** Called at the first message of a stream of requests, or when a single request is complete. */
  readonly onReceived: () => void;
  /** Called once when the call and its stream have ended. */
  readonly onClose: (call: NodeCall) => void;
}

const PREFIX_BYTES = 5;

/** One call of a node, which a handler of grpc-js serves. */
export class NodeCall implements StreamUser, CallHost {
  readonly path: string;
  readonly deadlineMs: number;
  readonly #stream: ServerStream;
  readonly #options: NodeCallOptions;
  readonly #reader: MessageReader;
  readonly #call: CallStream;
  #cancelDeadline: (() => void) | undefined;
  #hasHead = false;
  #hasStatus = false;
  #isPaused = false;
  /** Whether the client has ended its side. */
  #hasEnd = false;
  /** Whether the handler has received the end of the request. */
  #isRead = false;

  constructor(stream: ServerStream, head: RequestHead, options: NodeCallOptions) {
    this.path = head.path;
    this.#stream = stream;
    this.#options = options;
    this.#reader = new MessageReader(options.maxMessageBytes);
    const timeoutMs = timeoutMsOf(head) ?? Number.POSITIVE_INFINITY;
    this.deadlineMs = options.nowMs() + timeoutMs;
    this.#call = new CallStream(this, metadataOf(head));
    stream.user = this;
    if (Number.isFinite(timeoutMs))
      this.#cancelDeadline = options.schedule(timeoutMs, () =>
        this.fail(new CoordinatorError("DEADLINE_EXCEEDED", "the deadline of the call has passed")),
      );
  }

  get metadata(): Metadata {
    return this.#call.metadata;
  }

  /** Whether the call has sent its status, or its stream has ended. */
  get isOver(): boolean {
    return this.#hasStatus;
  }

  getPeer(): string {
    return this.#options.peer.getPeer();
  }

  getAuthContext(): ReturnType<PeeredCall["getAuthContext"]> {
    return this.#options.peer.getAuthContext();
  }

  /** Starts the handler, unless the call has a single request, which must arrive first. */
  start(): void {
    if (Number.isNaN(this.deadlineMs))
      this.fail(new CoordinatorError("INVALID", "the header grpc-timeout is invalid"));
    else if (this.#options.served.method.requestStream) this.#run();
  }

  /** Ends the call with the status of an error, even if messages wait to be sent. */
  fail(error: unknown): void {
    this.sendStatus(toServiceError(error));
  }

  data(bytes: Buffer): void {
    if (this.#hasStatus) return;
    this.#reader.push(bytes);
    this.#deliver();
  }

  end(): void {
    if (this.#hasStatus) return;
    this.#hasEnd = true;
    this.#deliver();
  }

  close(): void {
    this.#hasStatus = true;
    this.#cancelDeadline?.();
    this.#call.cancel();
    this.#options.onClose(this);
  }

  read(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#deliver();
  }

  widenWindow(bytes: number): void {
    this.#stream.widenWindow(bytes);
  }

  sendHead(metadata?: Metadata): void {
    if (this.#hasHead || this.#hasStatus) return;
    this.#hasHead = true;
    this.#stream.respond(responseHead(metadata));
  }

  sendMessage(message: unknown, onAccepted: (error?: Error) => void): void {
    if (this.#hasStatus) return;
    let bytes: Buffer;
    try {
      bytes = this.#options.served.method.responseSerialize(message);
    } catch (error) {
      this.sendStatus(internal(`the response can't be encoded: ${messageOf(error)}`));
      return;
    }
    this.sendHead();
    const framed = Buffer.allocUnsafe(PREFIX_BYTES + bytes.length);
    framed.writeUInt8(0, 0);
    framed.writeUInt32BE(bytes.length, 1);
    framed.set(bytes, PREFIX_BYTES);
    this.#stream.write(framed, () => onAccepted());
  }

  sendStatus(end: StatusObject): void {
    if (this.#hasStatus) return;
    this.#hasStatus = true;
    this.#cancelDeadline?.();
    const isPlain = end.code === status.OK && Object.keys(end.metadata.getMap()).length === 0;
    if (isPlain && !this.#hasHead) this.#stream.respond(responseHead());
    this.#stream.end(isPlain ? OK_TRAILERS : trailers(end, !this.#hasHead));
  }

  /** Gives the handler what has arrived, and lets the client send more unless the handler is slow. */
  #deliver(): void {
    const { served, onReceived } = this.#options;
    try {
      while (!this.#isPaused && !this.#hasStatus) {
        const bytes = this.#reader.next();
        if (bytes === undefined) break;
        const message = decode(served, bytes);
        if (served.method.requestStream) {
          onReceived();
          this.#isPaused = !this.#call.push(message);
        } else if (this.#call.request === undefined) this.#call.request = message;
        else throw new CoordinatorError("INVALID", "the call accepts only one request message");
      }
      if (this.#hasStatus || this.#isPaused) return;
      if (this.#hasEnd) this.#finishRequest();
      else this.#stream.returnWindow();
    } catch (error) {
      this.fail(error);
    }
  }

  #finishRequest(): void {
    if (this.#isRead) return;
    this.#isRead = true;
    this.#options.onReceived();
    const { requestStream } = this.#options.served.method;
    if (!this.#reader.isEmpty || (!requestStream && this.#call.request === undefined))
      throw new CoordinatorError("INVALID", "the request ended before its message was complete");
    this.#call.push(null);
    if (!requestStream) this.#run();
  }

  #run(): void {
    const call = this.#call;
    const respond = (error: Partial<ServiceError> | null, response?: unknown, metadata?: Metadata): void => {
      if (error !== null) {
        call.emit("error", error);
        return;
      }
      call.write(response);
      call.end(metadata);
    };
    try {
      const { handle } = this.#options.served;
      (handle as unknown as (call: CallStream, callback: typeof respond) => void)(call, respond);
    } catch (error) {
      this.sendStatus({ ...internal(messageOf(error)), code: status.UNKNOWN });
    }
  }
}

function metadataOf({ fields }: RequestHead): Metadata {
  return Metadata.fromHttp2Headers(Object.fromEntries(fields));
}

function decode({ method }: ServedMethod, bytes: Buffer): unknown {
  try {
    return method.requestDeserialize(bytes);
  } catch (error) {
    throw new CoordinatorError("INTERNAL", `the request can't be decoded: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function internal(details: string): StatusObject {
  return { code: status.INTERNAL, details, metadata: new Metadata() };
}
