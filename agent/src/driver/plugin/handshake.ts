import { APP_PROTOCOL_VERSION } from "./plugin-environment.ts";

export interface Handshake {
  readonly network: "unix" | "tcp";
  /** Path of the socket, or `host:port`. */
  readonly address: string;
  /** Unpadded base64 of the server's certificate in DER; empty without TLS. */
  readonly certificate: string;
  /**
   * Whether to add the field that reports that connections are not multiplexed. Hosts that did not request this field
   * cannot parse it.
   */
  readonly statesMultiplexing: boolean;
}

const CORE_PROTOCOL_VERSION = 1;

/** Returns the line that the program writes to stdout. Nomad connects by it. */
export function formatHandshake({ network, address, certificate, statesMultiplexing }: Handshake): string {
  const fields = [CORE_PROTOCOL_VERSION, APP_PROTOCOL_VERSION, network, address, "grpc", certificate];
  return `${[...fields, ...(statesMultiplexing ? ["false"] : [])].join("|")}\n`;
}
