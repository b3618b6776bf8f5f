import { connect, isIP } from "node:net";
import type { ExaminedPeer, PeerFinding } from "@forage/proto/forage/agent/v1/agent";
import type { PathSizes } from "./probe-path.ts";

/** Connects to peers over the network. Tests replace it. */
export interface PeerProbes {
  /** Returns "open", "refused", "silent", or the system's code of another failure. */
  connection(address: string, port: number): Promise<string>;
  path(address: string, port: number): Promise<PathSizes>;
}

const CONNECT_LIMIT_MS = 3_000;

/** Connects to a TCP port of another node, and measures the size of packets that arrive there. */
export async function examinePeer(
  { node, address, port: served }: ExaminedPeer,
  unservedPort: number,
  probes: PeerProbes,
): Promise<PeerFinding> {
  const serves = served !== 0;
  const port = serves ? served : unservedPort;
  const found = { node, address, port, serves };
  if (isIP(address) === 0) return { ...found, connection: "EINVAL", link: "", linkMtu: 0, pathMtu: 0 };
  const [connection, sizes] = await Promise.all([
    probes.connection(address, port),
    probes.path(address, unservedPort).catch(() => undefined),
  ]);
  const { link = "", linkMtu = 0, pathMtu = 0 } = sizes ?? {};
  return { ...found, connection, link, linkMtu, pathMtu };
}

export function tryConnection(address: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: CONNECT_LIMIT_MS });
    const end = (outcome: string): void => {
      socket.destroy();
      resolve(outcome);
    };
    socket.once("connect", () => end("open"));
    socket.once("timeout", () => end("silent"));
    socket.once("error", (error) => end(outcomeOf("code" in error ? String(error.code) : "")));
  });
}

function outcomeOf(code: string): string {
  if (code === "ECONNREFUSED") return "refused";
  return code === "ETIMEDOUT" ? "silent" : code || "failed";
}
