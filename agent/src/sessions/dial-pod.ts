import { spawn } from "node:child_process";
import { connect, type Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import { HOST_NETWORK } from "../runtime/runtime.ts";

/** Returns the addresses at which a pod's ports are reachable. */
export interface PodReach {
  readonly address: string;
  /** The path of the pod's network namespace, or {@link HOST_NETWORK}. */
  readonly namespacePath: string;
}

const CONNECT_TIMEOUT_MS = 10_000;
const SAID_MAX_LENGTH = 500;
const LOOPBACK = "127.0.0.1";
// Each relay is a process of about 45 MB.
const LOOPBACK_DIALS_MAX = 8;

/**
 * A node script that runs in a pod's network namespace. It connects to the port, prints "+", and copies bytes between
 * its descriptor 3 and the port.
 */
const RELAY = `
const net = require("node:net");
const client = new net.Socket({ fd: 3, readable: true, writable: true, allowHalfOpen: true });
const port = net.connect({ host: "${LOOPBACK}", port: Number(process.argv[1]), allowHalfOpen: true });
port.on("error", (error) => { process.stderr.write(error.code); process.exit(1); });
client.on("error", () => process.exit(1));
port.on("connect", () => { client.write("+"); client.pipe(port); port.pipe(client); });
`;

/**
 * Connects to a port of a pod at the pod's address. If nothing listens there, connects to the pod's loopback address,
 * because many debugging tools listen only there.
 */
export class PodDialer {
  readonly #reach: (podUid: string) => PodReach | undefined;
  /** The node program that runs the relays. */
  readonly #nodePath: string;
  #relays = 0;

  constructor(reach: (podUid: string) => PodReach | undefined, nodePath: string) {
    this.#reach = reach;
    this.#nodePath = nodePath;
  }

  async dial(podUid: string, port: number, signal: AbortSignal): Promise<Duplex> {
    const reach = this.#reach(podUid);
    if (reach === undefined) throw new Error("the pod has no network yet, or no longer");
    const onHost = reach.namespacePath === HOST_NETWORK;
    try {
      return await connectTo(onHost ? LOOPBACK : reach.address, port, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ECONNREFUSED") throw explain(error, port);
      if (onHost)
        return await connectTo(reach.address, port, signal).catch((e) => Promise.reject(explain(e, port)));
      return await this.#relay(reach.namespacePath, port, signal);
    }
  }

  async #relay(namespacePath: string, port: number, signal: AbortSignal): Promise<Duplex> {
    if (this.#relays >= LOOPBACK_DIALS_MAX)
      throw new Error(
        `${LOOPBACK_DIALS_MAX} connections to ports on pods' loopback addresses are open on this node`,
      );
    this.#relays += 1;
    const args = [`--net=${namespacePath}`, "--", this.#nodePath, "-e", RELAY, String(port)];
    const child = spawn("nsenter", args, {
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      stdio: ["ignore", "ignore", "pipe", "pipe"],
    });
    child.once("error", () => undefined);
    const connection = child.stdio[3] as Socket;
    connection.allowHalfOpen = true;
    connection.on("error", () => undefined);
    const kill = () => void child.kill("SIGKILL");
    child.once("close", () => {
      this.#relays -= 1;
      signal.removeEventListener("abort", kill);
    });
    connection.once("close", kill);
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    const words = outputEndOf(child.stderr as Readable);
    if (await firstByte(connection)) return connection;
    connection.destroy();
    const said = await words;
    throw explain(Object.assign(new Error(said || "it could not be tried"), { code: said }), port);
  }
}

function connectTo(host: string, port: number, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
    };
    const giveUp = (): void => void socket.destroy(new Error("given up"));
    const timer = setTimeout(
      () => socket.destroy(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })),
      CONNECT_TIMEOUT_MS,
    );
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    // Never removed: an error between reads must not crash the agent.
    socket.on("error", (error) => {
      settle();
      reject(error);
    });
    socket.once("connect", () => {
      settle();
      resolve(socket);
    });
  });
}

/** Resolves to true when the stream's first byte arrives, and to false at its end. */
function firstByte(stream: Readable): Promise<boolean> {
  return new Promise((resolve) => {
    const stat = (): void => {
      if (stream.read(1) !== null) settle(true);
    };
    const end = (): void => settle(false);
    const settle = (came: boolean): void => {
      stream.off("readable", stat);
      stream.off("close", end);
      stream.off("end", end);
      resolve(came);
    };
    stream.on("readable", stat);
    stream.once("end", end);
    stream.once("close", end);
  });
}

/** Returns the end of a program's output, truncated for display. */
function outputEndOf(stream: Readable): Promise<string> {
  let said = "";
  stream.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(0, SAID_MAX_LENGTH);
  });
  return new Promise((resolve) => stream.once("close", () => resolve(said.trim())));
}

function explain(error: unknown, port: number): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ECONNREFUSED":
      return new Error(`connection refused: nothing in the pod listens on port ${port}`, { cause: error });
    case "ETIMEDOUT":
      return new Error(`the pod does not answer on port ${port} within ${CONNECT_TIMEOUT_MS / 1000} s`, {
        cause: error,
      });
    default:
      return new Error(`port ${port} of the pod can't be reached: ${message}`, { cause: error });
  }
}
