import { createSocket } from "node:dgram";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import type { PortProbe } from "./port-allocator.ts";

/**
 * Reports whether a port is free by binding it for a moment. This takes about 0.1 ms and also detects sockets that are
 * bound but don't listen, on any address. It doesn't detect ports that other programs only translate, without a socket.
 */
export const probePort: PortProbe = (protocol, port) => {
  switch (protocol) {
    case "TCP":
      return canListen(port, "::").then(
        (free) => free ?? canListen(port, "0.0.0.0").then((it) => it === true),
      );
    case "UDP":
      return canBind(port, "udp6").then((free) => free ?? canBind(port, "udp4").then((it) => it === true));
    case "SCTP":
      return noSctpEndpoint(port);
    default:
      return protocol satisfies never;
  }
};

// Returns undefined if this address family is unavailable on this host.
function canListen(port: number, host: string): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => resolve(isInUse(error) ? false : undefined));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

function canBind(port: number, type: "udp4" | "udp6"): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket({ type });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      socket.close();
      resolve(isInUse(error) ? false : undefined);
    });
    socket.bind({ port, exclusive: true }, () => socket.close(() => resolve(true)));
  });
}

function isInUse(error: NodeJS.ErrnoException): boolean {
  return error.code === "EADDRINUSE" || error.code === "EACCES";
}

// Node has no SCTP sockets. The kernel's table has the local port in its sixth column.
async function noSctpEndpoint(port: number): Promise<boolean> {
  const table = await readFile("/proc/net/sctp/eps", "utf8").catch(() => "");
  return !table.split("\n").some((line) => line.trim().split(/\s+/)[5] === String(port));
}
