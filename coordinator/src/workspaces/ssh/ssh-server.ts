import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { ParsedKey, Server } from "ssh2";
import { CoordinatorError } from "../../errors.ts";
import { loadHostKey } from "./host-key.ts";
import { SshGateway, type SshGatewayOptions } from "./ssh-gateway.ts";
import type { SshSettings } from "./ssh-settings.ts";

export interface SshServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Ends the connections to a workspace that changed whose key or token no longer counts. */
  recheck(instanceId: string): void;
  close(): Promise<void>;
}

export interface SshServerOptions extends Omit<SshGatewayOptions, "settings" | "parseKey"> {
  readonly settings: SshSettings;
  readonly dataDir: string;
}

/** A client that doesn't answer four times is gone. */
const KEEPALIVE_INTERVAL_MS = 30_000;
const MAX_MISSED_KEEPALIVES = 4;

/** Opens the SSH gateway's port. The library is loaded here, so that only those who use it pay for it. */
export async function startSshServer(options: SshServerOptions): Promise<SshServer> {
  const { settings, dataDir } = options;
  const { default: ssh2 } = await import("ssh2");
  const path = settings.hostKeyFile ?? join(dataDir, "keys", "workspace-ssh.key");
  const isReadable = (key: string): boolean => !(ssh2.utils.parseKey(key) instanceof Error);
  const hostKey = await loadHostKey(path, {
    generate: () => ssh2.utils.generateKeyPairSync("ed25519").private,
    isReadable,
  });
  if (!isReadable(hostKey))
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `workspaces.ssh.hostKeyFile: ${path} holds no private key`,
    );
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
  const address = await listen(server, settings.listen);
  return {
    address,
    recheck: (instanceId) => gateway.recheck(instanceId),
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      gateway.close();
      await closed;
    },
  };
}

function listen(server: Server, text: string): Promise<{ readonly host: string; readonly port: number }> {
  const colon = text.lastIndexOf(":");
  const host = text.slice(0, colon).replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    server.on("error", (cause: Error) =>
      reject(
        new CoordinatorError(
          "FAILED_PRECONDITION",
          `workspaces.ssh.listen: ${text} can't be opened: ${cause.message}`,
          {
            cause,
          },
        ),
      ),
    );
    server.listen(Number(text.slice(colon + 1)), host, () => {
      const { port } = server.address() as AddressInfo;
      resolve({ host, port });
    });
  });
}
