import type { MethodDefinition } from "@grpc/grpc-js";
import type { CallContext } from "./caller.ts";
import type { FramesHandler } from "./frames.ts";
import type { PushHandler } from "./push.ts";

export type Method = MethodDefinition<unknown, unknown>;

/**
 * A handler as an async function or a generator with a context, instead of grpc-js' call objects
 * and callbacks.
 */
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
            | FramesHandler<Request>
        : (request: Request, context: CallContext) => Promise<Response>
    : never
  : never;

export type Handlers<S> = { readonly [Name in keyof S]: Handler<S[Name]> };
