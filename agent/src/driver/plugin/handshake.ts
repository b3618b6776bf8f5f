import { APP_PROTOCOL_VERSION } from "./plugin-environment.ts";

export interface Handshake {
  readonly network: "unix" | "tcp";
  /** Path of the socket, or `host:port`. */
  readonly address: string;
  /** Unpadded base64 of the server's certificate in DER; empty without TLS. */
  readonly certificate: string;
  /** Adds the field that says that connections are not multiplexed. Hosts that did not ask for it cannot read it. */
  readonly tellsMultiplexing: boolean;
}

const CORE_PROTOCOL_VERSION = 1;

/** Returns the one line that the program writes to stdout, by which Nomad connects to it. */
export function formatHandshake({ network, address, certificate, tellsMultiplexing }: Handshake): string {
  const fields = [CORE_PROTOCOL_VERSION, APP_PROTOCOL_VERSION, network, address, "grpc", certificate];
  return `${[...fields, ...(tellsMultiplexing ? ["false"] : [])].join("|")}\n`;
}
