import { constants, type ServerHttp2Stream } from "node:http2";
import { http2StreamOf } from "@forage/identity/http2-stream";
import {
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  status,
} from "@grpc/grpc-js";
import type { Clock } from "../clock.ts";

export interface CallLimitsOptions {
  readonly clock: Pick<Clock, "schedule">;
  /** The limit of open calls of all clients of the host. */
  readonly maxCalls: number;
  /**
   * The limit of open calls of one address over all its connections, including calls that have not sent their request
   * yet.
   */
  readonly maxCallsPerAddress: number;
  /** The time between a call's headers and its complete request. */
  readonly firstMessageMs: number;
}

/**
 * Limits the open calls on a port by client address. It decides when a call's headers arrive, and resets a rejected
 * call, so that a client that never ends its half of a stream occupies nothing.
 */
export class CallLimits {
  readonly #options: CallLimitsOptions;
  readonly #openOf = new Map<string, number>();
  #open = 0;

  constructor(options: CallLimitsOptions) {
    this.#options = options;
  }

  get openCalls(): number {
    return this.#open;
  }

  readonly interceptor: ServerInterceptor = (_method, call) =>
    new ServerInterceptingCall(call, {
      start: (next) => {
        let received = (): void => {};
        next({
          onReceiveMetadata: (metadata, proceed) => {
            const admitted = this.#admit(call);
            if (admitted === undefined) return;
            received = admitted;
            proceed(metadata);
          },
          // The handler runs when the client has ended its half, not when the message arrives.
          onReceiveHalfClose: (proceed) => {
            received();
            proceed();
          },
          onCancel: () => received(),
        });
      },
    });

  /** Returns a function to call when the request is complete, or undefined if the call was rejected. */
  #admit(call: ServerInterceptingCallInterface): (() => void) | undefined {
    const { maxCalls, maxCallsPerAddress, firstMessageMs, clock } = this.#options;
    const stream = http2StreamOf(call);
    const peer = call.getPeer();
    const address = peer.slice(0, peer.lastIndexOf(":"));
    const open = this.#openOf.get(address) ?? 0;
    if (open >= maxCallsPerAddress)
      return refuse(
        call,
        stream,
        status.RESOURCE_EXHAUSTED,
        `${address} has ${open} calls already; end some`,
      );
    if (this.#open >= maxCalls)
      return refuse(
        call,
        stream,
        status.RESOURCE_EXHAUSTED,
        `this host has ${maxCalls} calls; try again later`,
      );
    this.#open += 1;
    this.#openOf.set(address, open + 1);
    const cancel = clock.schedule(firstMessageMs, () => {
      const details = `no complete request arrived within ${firstMessageMs / 1000} s`;
      refuse(call, stream, status.DEADLINE_EXCEEDED, details);
    });
    stream.once("close", () => {
      cancel();
      this.#open -= 1;
      const left = (this.#openOf.get(address) ?? 1) - 1;
      if (left === 0) this.#openOf.delete(address);
      else this.#openOf.set(address, left);
    });
    return cancel;
  }
}

function refuse(
  call: ServerInterceptingCallInterface,
  stream: ServerHttp2Stream,
  code: status,
  details: string,
): undefined {
  call.sendStatus({ code, details, metadata: null });
  stream.close(constants.NGHTTP2_NO_ERROR);
}
