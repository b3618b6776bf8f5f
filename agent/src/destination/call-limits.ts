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
  /** Open calls of all clients of the host. */
  readonly maxCalls: number;
  /** Open calls of one address over all its connections, those that have not sent their request included. */
  readonly maxCallsPerAddress: number;
  /** Time from a call's headers to its complete request. */
  readonly firstMessageMs: number;
}

/**
 * Limits the open calls of a port on which addresses are the clients. It decides from a call's headers, and a refused call is
 * reset, so that a client which never ends its half of a stream holds nothing.
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
          // The handler runs once the client has ended its half, and not at the message.
          onReceiveHalfClose: (proceed) => {
            received();
            proceed();
          },
          onCancel: () => received(),
        });
      },
    });

  /** Returns what to call at the request, or undefined if the call was refused. */
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
