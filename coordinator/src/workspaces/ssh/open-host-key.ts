import { join } from "node:path";
import { CoordinatorError } from "../../errors.ts";
import { loadHostKey } from "./host-key.ts";

export interface HostKeyOptions {
  readonly dataDir: string;
  /** The file of the host key. Default: `keys/workspace-ssh.key` in `dataDir`. */
  readonly hostKeyFile?: string | undefined;
}

/**
 * Reads the SSH gateway's private host key, and generates it if the file is missing. The SSH library
 * is loaded here, so that coordinators that don't need it don't load it. @throws CoordinatorError
 * FAILED_PRECONDITION if the file can't be read or written, or holds no private key.
 */
export async function openHostKey({ dataDir, hostKeyFile }: HostKeyOptions): Promise<string> {
  const { default: ssh2 } = await import("ssh2");
  const path = hostKeyFile ?? join(dataDir, "keys", "workspace-ssh.key");
  const isReadable = (key: string): boolean => !(ssh2.utils.parseKey(key) instanceof Error);
  const hostKey = await loadHostKey(path, {
    generate: () => ssh2.utils.generateKeyPairSync("ed25519").private,
    isReadable,
  });
  if (isReadable(hostKey)) return hostKey;
  throw new CoordinatorError(
    "FAILED_PRECONDITION",
    `workspaces.ssh.hostKeyFile: ${path} holds no private key`,
  );
}
