import { createSocket } from "node:dgram";
import { connect, isIPv6 } from "node:net";
import { argv, stdout } from "node:process";

/** The limit of a wait on a busy machine. Only a failing test waits this long. */
const PATIENCE_MS = 8_000;

/** Returns the response of `answer.ts`, or "refused", "silent" or the code of another error. */
export function ask(
  protocol: "TCP" | "UDP",
  address: string,
  port: number,
  from?: { udpPort: number },
): Promise<string> {
  return protocol === "TCP" ? askByTcp(address, port) : askByUdp(address, port, from?.udpPort ?? 0);
}

function askByTcp(address: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect({ host: address, port, timeout: PATIENCE_MS });
    socket.on("data", (bytes) => {
      answer += bytes.toString();
    });
    socket.on("close", () => resolve(answer));
    socket.on("timeout", () => resolve("silent"));
    socket.on("timeout", () => socket.destroy());
    socket.on("error", (error: NodeJS.ErrnoException) => {
      resolve(error.code === "ECONNREFUSED" ? "refused" : (error.code ?? "error"));
    });
  });
}

function askByUdp(address: string, port: number, ownPort: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
    const done = (answer: string) => {
      clearTimeout(timer);
      socket.close();
      resolve(answer);
    };
    const timer = setTimeout(() => done("silent"), PATIENCE_MS);
    socket.on("message", (bytes) => done(bytes.toString()));
    const failed = (error: NodeJS.ErrnoException) =>
      done(error.code === "ECONNREFUSED" ? "refused" : (error.code ?? "error"));
    socket.on("error", failed);
    const sent = (error: Error | null) => error && failed(error);
    socket.bind(ownPort, () => socket.connect(port, address, () => socket.send("?", sent)));
  });
}

// `ask TCP|UDP ADDRESS PORT` sends a request from another network namespace.
if (import.meta.main) {
  const [protocol, address = "", port = ""] = argv.slice(2);
  stdout.write(await ask(protocol === "UDP" ? "UDP" : "TCP", address, Number(port)));
}
