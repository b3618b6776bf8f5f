import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Arrival } from "../forwarding/forward-headers.ts";

/** Host names whose requests don't go to the server's own routes. */
export interface OtherHosts {
  /** Reports whether the Host header names one of them. */
  owns(host: string | undefined): boolean;
  /** Calls `allowLong` once the request's body may take long to arrive. */
  serve(
    request: IncomingMessage,
    response: ServerResponse,
    arrival: Arrival,
    allowLong: () => void,
  ): Promise<void>;
  upgrade(request: IncomingMessage, client: Duplex, head: Buffer, arrival: Arrival): Promise<void>;
  /** Ends what is in progress. */
  close(): void;
}
