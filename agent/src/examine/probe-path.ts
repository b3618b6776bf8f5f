import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";
import type { RunCommand } from "../network/run-command.ts";

/** The path of packets to another host. */
export interface PathSizes {
  /** The outgoing link, and the size of its largest packets. */
  readonly link: string;
  readonly linkMtu: number;
  /**
   * The size of the largest packet that arrived. Undefined: the host does not answer datagrams, so nothing was
   * measured.
   */
  readonly pathMtu: number | undefined;
}

/**
 * Sends one packet of this size. Resolves to true if the host answered, as it does for a datagram to a closed port, and
 * to false otherwise.
 */
export type SendPacket = (
  address: string,
  port: number,
  packetBytes: number,
  timeoutMs: number,
) => Promise<boolean>;

/**
 * Common maximum packet sizes of links and tunnels: Ethernet, PPPoE, VXLAN, WireGuard, IPsec, and the minimum of IPv6.
 */
const COMMON_SIZES = [1_500, 1_492, 1_480, 1_450, 1_420, 1_400, 1_380, 1_340, 1_280, 1_200];
/** The size of packets that every path can carry. */
const SMALL_BYTES = 576;
const ANSWER_LIMIT_MS = 500;
const ATTEMPTS = 2;
const LOOPBACK = "lo";

/**
 * Measures the largest packet that arrives at the address. The kernel does not fragment packets up to the link's size.
 * A host limits the rate of its answers, so sizes are tried one after the other, the largest first, and the first
 * answer ends the measurement.
 */
export async function measurePath(
  address: string,
  port: number,
  run: RunCommand,
  send: SendPacket = sendPacket,
): Promise<PathSizes> {
  const [route] = JSON.parse(await run("ip", ["-json", "route", "get", address])) as { dev?: string }[];
  const link = route?.dev ?? "";
  if (link === "") throw new Error(`no route leads to ${address}`);
  const [found] = JSON.parse(await run("ip", ["-json", "link", "show", "dev", link])) as { mtu?: number }[];
  const linkMtu = found?.mtu ?? 0;
  if (link === LOOPBACK) return { link, linkMtu, pathMtu: linkMtu };
  const arrives = async (size: number, attempts: number): Promise<boolean> => {
    for (let i = 0; i < attempts; i++) if (await send(address, port, size, ANSWER_LIMIT_MS)) return true;
    return false;
  };
  if (await arrives(linkMtu, ATTEMPTS)) return { link, linkMtu, pathMtu: linkMtu };
  if (!(await arrives(SMALL_BYTES, ATTEMPTS))) return { link, linkMtu, pathMtu: undefined };
  for (const size of COMMON_SIZES)
    if (size < linkMtu && (await arrives(size, 1))) return { link, linkMtu, pathMtu: size };
  return { link, linkMtu, pathMtu: SMALL_BYTES };
}

const UDP_HEADER_BYTES = 8;
const IPV4_HEADER_BYTES = 20;
const IPV6_HEADER_BYTES = 40;

/**
 * Sends over a connected socket, which reports if the host answers that the port is closed. A service's answer counts
 * too.
 */
export const sendPacket: SendPacket = (address, port, packetBytes, timeoutMs) =>
  new Promise((resolve) => {
    const family = isIPv6(address) ? "udp6" : "udp4";
    const headers = UDP_HEADER_BYTES + (family === "udp6" ? IPV6_HEADER_BYTES : IPV4_HEADER_BYTES);
    const socket = createSocket(family);
    let over = false;
    const done = (answered: boolean): void => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      socket.close();
      resolve(answered);
    };
    const timer = setTimeout(() => done(false), timeoutMs);
    const failed = (error: Error | null): void => {
      if (error !== null) done("code" in error && error.code === "ECONNREFUSED");
    };
    socket.on("error", failed);
    socket.on("message", () => done(true));
    // A failed connection calls this function with the error, and no event follows.
    socket.connect(port, address, (error?: Error) => {
      if (error) done(false);
      if (!over) socket.send(Buffer.alloc(Math.max(0, packetBytes - headers)), failed);
    });
  });
