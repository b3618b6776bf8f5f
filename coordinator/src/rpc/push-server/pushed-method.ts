import type { MethodDefinition } from "@grpc/grpc-js";
import { CoordinatorError } from "../../errors.ts";
import { assertMayCall } from "../access.ts";
import type { CallContext } from "../caller.ts";
import { Framer } from "../direct-writer.ts";
import type { PushHandler, Sink } from "../push.ts";

/** A method with one request and a stream of encoded responses. */
export interface PushedMethod {
  readonly path: string;
  /** The framer of all calls, which are often sent the same message in a row. */
  readonly framer: Framer;
  /**
   * Starts a call with its encoded request. Returns a function that stops it. Throws the error that
   * refuses the call.
   */
  readonly begin: (request: Buffer, context: Omit<CallContext, "signal">, sink: Sink<Buffer>) => () => void;
}

export function pushedMethod<Q>(
  { path, requestDeserialize }: Pick<MethodDefinition<Q, Buffer>, "path" | "requestDeserialize">,
  handler: PushHandler<Q, Buffer>,
): PushedMethod {
  return {
    path,
    framer: new Framer(),
    begin: (bytes, context, sink) => {
      const request = decode(requestDeserialize, bytes);
      assertMayCall(context.caller, path, request);
      return handler.push(request, context, sink);
    },
  };
}

function decode<Q>(deserialize: (bytes: Buffer) => Q, bytes: Buffer): Q {
  try {
    return deserialize(bytes);
  } catch (error) {
    throw new CoordinatorError("INVALID", "the request is not a valid message of the method", {
      cause: error,
    });
  }
}
