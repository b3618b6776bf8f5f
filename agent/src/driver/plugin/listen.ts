import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Server, ServerCredentials } from "@grpc/grpc-js";
import type { PluginEnvironment } from "./plugin-environment.ts";

export interface PluginSocket {
  readonly network: "unix" | "tcp";
  readonly address: string;
  /** Removes the socket. */
  readonly remove: () => void;
}

const LOOPBACK = "127.0.0.1";
const OWNER_ONLY = 0o600;
const OWNER_AND_GROUP = 0o660;
/** `sun_path` holds 108 bytes with the terminating zero. */
const MAX_SOCKET_PATH_BYTES = 107;

/** Listens on a new Unix socket to which only the owner, or the group that the host names, can connect. */
export async function listenUnix(
  server: Server,
  credentials: ServerCredentials,
  { socketDir, socketGroup }: Pick<PluginEnvironment, "socketDir" | "socketGroup">,
): Promise<PluginSocket> {
  const path = join(socketDir ?? tmpdir(), `plugin${randomBytes(8).toString("hex")}`);
  await bindSocket(server, credentials, path);
  if (socketGroup !== undefined) {
    chownSync(path, -1, groupId(socketGroup));
    chmodSync(path, OWNER_AND_GROUP);
  }
  return { network: "unix", address: path, remove: () => rmSync(path, { force: true }) };
}

/** Binds a Unix socket. At no time can another user connect to it. */
export async function bindSocket(
  server: Server,
  credentials: ServerCredentials,
  path: string,
): Promise<void> {
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES)
    throw new Error(`the socket's path ${path} has more than ${MAX_SOCKET_PATH_BYTES} bytes`);
  const before = process.umask(0o177);
  try {
    await bind(server, credentials, `unix:${path}`);
  } finally {
    process.umask(before);
  }
  if (existsSync(path)) chmodSync(path, OWNER_ONLY);
}

/** Listens on the first free loopback port of the range. */
export async function listenTcp(
  server: Server,
  credentials: ServerCredentials,
  { min, max }: PluginEnvironment["ports"],
): Promise<PluginSocket> {
  for (let port = min; port <= max; port++) {
    const bound = await bind(server, credentials, `${LOOPBACK}:${port}`).catch((error: unknown) => {
      if (port === max) throw new Error(`no port from ${min} to ${max} is free`, { cause: error });
      return undefined;
    });
    if (bound !== undefined)
      return { network: "tcp", address: `${LOOPBACK}:${bound}`, remove: () => undefined };
  }
  throw new Error(`no port from ${min} to ${max} is free`);
}

function bind(server: Server, credentials: ServerCredentials, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
  });
}

function groupId(group: string): number {
  if (/^\d+$/.test(group)) return Number(group);
  for (const line of readFileSync("/etc/group", "utf8").split("\n")) {
    const [name, , id] = line.split(":");
    if (name === group && id !== undefined) return Number(id);
  }
  throw new Error(`PLUGIN_UNIX_SOCKET_GROUP: there is no group ${JSON.stringify(group)} on this host`);
}
