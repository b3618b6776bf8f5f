import { CoordinatorServiceService } from "@forage/proto/forage/coordinator/v1/coordinator";
import { Metadata } from "@grpc/grpc-js";
import type { PassHttpOptions } from "./pass-http.ts";
import { PassedConnection } from "./passed-connection.ts";
import { CONNECT, type PassedPort } from "./serve-connection.ts";

/** The connection of a client, described to the leader. */
export interface ClientConnection {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

/**
 * Opens a connection to a port of the leader on behalf of a client. @throws CoordinatorError
 * UNAVAILABLE if the leader can't be reached.
 */
export async function connectToLeader(
  client: PassHttpOptions["client"],
  port: PassedPort,
  { remoteAddress = "", remotePort = 0, localAddress = "", localPort = 0 }: ClientConnection,
  encrypted: boolean,
  signal: AbortSignal,
): Promise<PassedConnection> {
  const channel = await client(signal);
  const { path, requestSerialize, responseDeserialize } = CoordinatorServiceService.http;
  const call = channel.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, new Metadata());
  const ends = { remoteAddress, remotePort, localAddress, localPort, encrypted };
  call.write({ part: { $case: "head", value: { method: CONNECT[port], url: "", headers: [], ...ends } } });
  return new PassedConnection(call);
}
