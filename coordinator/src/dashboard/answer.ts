import { bodyLimit } from "hono/body-limit";
import { CoordinatorError } from "../errors.ts";
import { type Bound, failed } from "../http/api/call.ts";

/** Wraps a handler, and answers with the error if the handler throws. */
export function answering(work: (c: Bound) => Promise<Response>): (c: Bound) => Promise<Response> {
  return async (c) => {
    try {
      return await work(c);
    } catch (error) {
      return failed(c, error);
    }
  };
}

/** Refuses requests with longer bodies. */
export function limitBody(maxSize: number) {
  const error = new CoordinatorError("INVALID", `the body must not be longer than ${maxSize} bytes`);
  return bodyLimit({ maxSize, onError: (c) => failed(c, error) });
}
