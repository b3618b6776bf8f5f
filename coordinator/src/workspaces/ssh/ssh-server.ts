import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ParsedKey } from "ssh2";
import { openHostKey } from "./open-host-key.ts";
import { SshGateway, type SshGatewayOptions } from "./ssh-gateway.ts";
import { openSshPort, type SshPort } from "./ssh-port.ts";
import type { SshSettings } from "./ssh-settings.ts";

export interface SshServer {
  readonly address: SshPort["address"];
  /** Serves a connection that another coordinator passed on. */
  accept(connection: Duplex): void;
  /** Closes the connections to a changed workspace whose key or token is no longer valid. */
  recheck(instanceId: string): void;
  close(): Promise<void>;
}

export interface SshServerOptions extends Omit<SshGatewayOptions, "settings" | "parseKey"> {
  readonly settings: SshSettings;
  readonly dataDir: string;
  /** A port that is already open. Default: the server opens the configured port. */
  readonly port?: SshPort | undefined;
}

/**
 * The interval between keep-alive messages. A client that leaves four unanswered is disconnected.
 */
const KEEPALIVE_INTERVAL_MS = 30_000;
const MAX_MISSED_KEEPALIVES = 4;

/**
 * Starts the SSH gateway on its port. The SSH library is loaded here, so that it is loaded only if
 * the gateway is enabled.
 */
export async function startSshServer(options: SshServerOptions): Promise<SshServer> {
  const { settings, dataDir } = options;
  const { default: ssh2 } = await import("ssh2");
  const hostKey = await openHostKey({ dataDir, hostKeyFile: settings.hostKeyFile });
  const parseKey = (line: string): ParsedKey | undefined => {
    const key: ParsedKey | ParsedKey[] | Error = ssh2.utils.parseKey(line);
    if (key instanceof Error) return undefined;
    return Array.isArray(key) ? key[0] : key;
  };
  const gateway = new SshGateway({ ...options, parseKey });
  const server = new ssh2.Server(
    {
      hostKeys: [hostKey],
      ident: "Forage",
      keepaliveInterval: KEEPALIVE_INTERVAL_MS,
      keepaliveCountMax: MAX_MISSED_KEEPALIVES,
    },
    (connection, info) => gateway.serve(connection, info),
  );
  // The library accepts any stream, although its declared type requires a socket.
  const accept = (connection: Duplex): void => server.injectSocket(connection as Socket);
  const port = options.port ?? (await openSshPort(settings, accept));
  port.serve(accept);
  return {
    address: port.address,
    accept,
    recheck: (instanceId) => gateway.recheck(instanceId),
    close: async () => {
      gateway.close();
      await port.close();
    },
  };
}
