import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * The time within which the body of a request must arrive. The largest accepted manifest takes 3.4
 * s over 10 Mbit/s.
 */
export const BODY_MS = 10_000;
/**
 * The longest time without progress of a long upload, regardless of whether the client or the
 * target is slow.
 */
export const STALL_MS = 60_000;

export interface BodyLimitsOptions {
  readonly schedule: (delayMs: number, run: () => void) => () => void;
}

/**
 * Ends requests whose body does not arrive in time. Replaces Node's own limit, which is the same
 * for all requests of a server, while uploads to pods may take long.
 */
export class BodyLimits {
  readonly #options: BodyLimitsOptions;

  constructor(options: BodyLimitsOptions) {
    this.#options = options;
  }

  /**
   * Starts the limit of a request; must be called for each. Returns a function that allows any
   * duration as long as bytes arrive.
   */
  begin(request: IncomingMessage, response: ServerResponse): () => void {
    if (!hasBody(request)) return () => {};
    let cancel = this.#options.schedule(BODY_MS, () => end(request, response, BODY_MS));
    request.once("end", () => cancel());
    request.once("close", () => cancel());
    return () => {
      cancel();
      if (request.complete || request.destroyed) return;
      const watch = (seenBytes: number): void => {
        cancel = this.#options.schedule(STALL_MS, () => {
          const { bytesRead } = request.socket;
          if (bytesRead === seenBytes) end(request, response, STALL_MS);
          else watch(bytesRead);
        });
      };
      watch(request.socket.bytesRead);
    };
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function end(request: IncomingMessage, response: ServerResponse, limitMs: number): void {
  if (request.complete) return;
  const { socket } = request;
  if (response.headersSent) return void socket.destroy();
  const body = `the request did not arrive within ${limitMs / 1000} s\n`;
  const head = `HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${body.length}`;
  socket.end(`${head}\r\nConnection: close\r\n\r\n${body}`, () => socket.destroy());
}
