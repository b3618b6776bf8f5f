import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { RequestOrigin } from "../forwarding/forward-headers.ts";

/** Serves host names that do not belong to the server's own routes. */
export interface OtherHosts {
  /** Reports whether the Host header contains such a host name. */
  owns(host: string | undefined): boolean;
  /** Serves a request. Calls `allowLong` once the request's body may take long to arrive. */
  serve(
    request: IncomingMessage,
    response: ServerResponse,
    arrival: RequestOrigin,
    allowLong: () => void,
  ): Promise<void>;
  upgrade(request: IncomingMessage, client: Duplex, head: Buffer, arrival: RequestOrigin): Promise<void>;
  /** Ends requests in progress. */
  close(): void;
}
