import { CoordinatorError } from "../../errors.ts";
import type { RequestHead } from "../../http2/request-head.ts";
import type { ServerStream, StreamUser } from "../../http2/server-stream.ts";
import { begin, type CallObserver } from "../call-observer.ts";
import type { Caller } from "../caller.ts";
import type { Sink } from "../push.ts";
import { toServiceError } from "../status.ts";
import { errorTrailers, OK_TRAILERS, RESPONSE_HEAD, timeoutMsOf } from "./grpc-head.ts";
import type { PushedMethod } from "./pushed-method.ts";
import { RequestReader } from "./request-reader.ts";

export interface PushedCallOptions extends CallObserver {
  readonly caller: Caller;
  readonly peer: string;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Called once when both the call and its stream have ended. */
  readonly onClose: (call: PushedCall) => void;
}

/** One call of a method with one request and a stream of responses. */
export class PushedCall implements StreamUser, Sink<Buffer> {
  readonly #stream: ServerStream;
  readonly #method: PushedMethod;
  readonly #options: PushedCallOptions;
  readonly #done: (code: number, error?: unknown) => void;
  #cancelDeadline: (() => void) | undefined;
  #request: RequestReader | undefined = new RequestReader();
  #stop: (() => void) | undefined;
  #isOver = false;
  #hasResponse = false;

  constructor(stream: ServerStream, method: PushedMethod, options: PushedCallOptions) {
    this.#stream = stream;
    this.#method = method;
    this.#options = options;
    this.#done = begin(method.path, options);
    stream.user = this;
  }

  /** Sets the call's deadline, or refuses the call. */
  start(head: RequestHead): void {
    const timeoutMs = timeoutMsOf(head);
    if (timeoutMs === undefined) return;
    if (Number.isNaN(timeoutMs)) {
      this.fail(new CoordinatorError("INVALID", "the header grpc-timeout is invalid"));
      return;
    }
    this.#cancelDeadline = this.#options.schedule(timeoutMs, () =>
      this.fail(new CoordinatorError("DEADLINE_EXCEEDED", "the deadline of the call has passed")),
    );
  }

  /** Whether the request is still incomplete. */
  get isWaiting(): boolean {
    return this.#request !== undefined;
  }

  data(bytes: Buffer): void {
    try {
      this.#request?.push(bytes);
    } catch (error) {
      this.fail(error);
    }
  }

  end(): void {
    const request = this.#request;
    this.#request = undefined;
    if (request === undefined || this.#isOver) return;
    try {
      const { path, begin: beginCall } = this.#method;
      const { caller, peer } = this.#options;
      const stop = beginCall(request.message(), { method: path, caller, peer }, this);
      // The call may have failed before `begin` returned.
      if (this.#isOver) stop();
      else this.#stop = stop;
    } catch (error) {
      this.fail(error);
    }
  }

  close(): void {
    this.#finish(undefined);
    this.#options.onClose(this);
  }

  send(message: Buffer, onAccepted: () => void): void {
    if (this.#isOver) return;
    if (!this.#hasResponse) {
      this.#hasResponse = true;
      this.#stream.respond(RESPONSE_HEAD);
    }
    this.#stream.write(this.#method.framer.framed(message), onAccepted);
  }

  fail(error: unknown): void {
    this.#finish(error);
  }

  /** Ends the call with OK, as when the server stops; clients then reconnect. */
  finish(): void {
    this.#finish(undefined);
  }

  #finish(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#request = undefined;
    this.#cancelDeadline?.();
    this.#stop?.();
    const isFirst = !this.#hasResponse;
    if (error === undefined) {
      this.#done(0);
      if (isFirst) this.#stream.respond(RESPONSE_HEAD);
      this.#stream.end(OK_TRAILERS);
    } else {
      this.#done(toServiceError(error).code, error);
      this.#stream.end(errorTrailers(error, isFirst));
    }
  }
}
