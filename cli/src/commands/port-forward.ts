import type { Socket } from "node:net";
import { messageOf } from "@forage/common/message-of";
import { status } from "@grpc/grpc-js";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError, explain } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { renderDocument } from "../output/document.ts";
import { plainText } from "../output/plain-text.ts";
import { forwardConnection } from "../session/forward-connection.ts";
import { listen, type PortListener } from "../session/listen.ts";
import { type ForwardTarget, findForwardTarget } from "./forward-target.ts";

const MAX_PORT = 65_535;
/** The most forwarded ports. Each needs a listener. */
const MAX_PORTS = 32;

export const portForward = defineCommand({
  name: "port-forward",
  summary: "Reach ports of a pod through the coordinator, as ports of this machine",
  details: `With KIND/NAME of a workload or a service, one of its ready pods is chosen, and another one when that pod is removed; ports are then the service's.
It continues until it is interrupted, or until the named pod is removed. Everyone who can connect to this machine's port reaches the pod; by default only programs on this machine can.`,
  operands: [
    {
      name: "POD|KIND/NAME",
      required: true,
      help: "a pod by name or the beginning of its uid, a workload or a service",
    },
    {
      name: "[LOCAL:]REMOTE",
      required: true,
      repeated: true,
      help: "port of the pod, and of this machine where that is another; :REMOTE for any that is free",
    },
  ],
  flags: {
    address: {
      type: "text",
      hint: "ADDRESS",
      help: "address of this machine to listen on; 127.0.0.1 by default",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [target = "", ...texts] = invocation.operands;
    const ports = texts.map(parsePorts);
    if (ports.length > MAX_PORTS) throw new CliError("USAGE", `at most ${MAX_PORTS} ports at once`);
    const address = invocation.flags.address ?? "127.0.0.1";
    return withCoordinator(context, (coordinator) =>
      new PortForward(context, coordinator, target).run(address, ports),
    );
  },
});

interface Ports {
  readonly local: number;
  readonly remote: number;
}

/** Parses ports: `80` means 80:80, and `:80` means any free local port to 80. */
export function parsePorts(text: string): Ports {
  const [, local, remote = ""] = /^(?:(\d*):)?(\d+)$/.exec(text) ?? [];
  const ports = { local: Number(local ?? remote), remote: Number(remote) };
  if (ports.remote < 1 || ports.remote > MAX_PORT || ports.local > MAX_PORT)
    throw new CliError(
      "USAGE",
      `"${text}" is not REMOTE, LOCAL:REMOTE or :REMOTE with ports up to ${MAX_PORT}`,
    );
  return ports;
}

class PortForward {
  readonly #context: Context;
  readonly #coordinator: Coordinator;
  readonly #name: string;
  readonly #over = new AbortController();
  #failure: unknown;

  constructor(context: Context, coordinator: Coordinator, name: string) {
    this.#context = context;
    this.#coordinator = coordinator;
    this.#name = name;
  }

  /** Forwards until it is interrupted or the pod is deleted. Always throws the reason. */
  async run(address: string, ports: readonly Ports[]): Promise<never> {
    let target = await this.#find();
    // Ports that the service lacks are reported before any listener is opened.
    const requested = ports.map(({ local, remote }) => ({ local, remote, inPod: target.portOf(remote) }));
    const connection = async (socket: Socket, port: number): Promise<void> => {
      const outcome = await this.#forward(socket, target.pod, port);
      if (!(outcome instanceof CallError)) return;
      const gone = outcome.status === status.NOT_FOUND;
      if (!target.replaceable) return gone ? this.#end(outcome) : undefined;
      if (!gone && outcome.status !== status.FAILED_PRECONDITION) return;
      target = await this.#find().catch((error) => {
        this.#report(error);
        return target;
      });
    };
    const listeners: PortListener[] = [];
    const { signal } = this.#context;
    const interrupted = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
      this.#over.signal.addEventListener("abort", () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
    try {
      for (const { local, inPod } of requested) {
        listeners.push(
          await listen(
            { address, port: local },
            {
              connection: (socket) => void connection(socket, inPod),
              refused: (limit) => this.#report(`${limit} connections are open; one more was refused`),
            },
          ),
        );
      }
      this.#announce(
        address,
        target.pod,
        requested.map(({ remote }, i) => ({ local: listeners[i]?.port ?? 0, remote })),
      );
      await interrupted;
    } finally {
      for (const listener of listeners) listener.close();
      this.#over.abort();
    }
    throw this.#failure ?? signal.reason;
  }

  #find(): Promise<ForwardTarget> {
    return findForwardTarget(this.#coordinator, this.#context.settings.namespace, this.#name);
  }

  /** Forwards one connection. Returns undefined on success, or the error to report. */
  async #forward(socket: Socket, pod: string, port: number): Promise<unknown> {
    const { settings, signal } = this.#context;
    const start = { namespace: settings.namespace, pod, port };
    const over = AbortSignal.any([signal, this.#over.signal]);
    // The client may disconnect while another coordinator is tried.
    socket.on("error", () => {});
    try {
      const call = await this.#coordinator.duplex(operator.portForward);
      if (socket.destroyed) call.cancel();
      else await forwardConnection(socket, call, start, over);
      return undefined;
    } catch (error) {
      const explained = explain(error, this.#coordinator.endpoint, signal);
      this.#report(explained);
      return explained;
    }
  }

  #end(failure: unknown): void {
    this.#failure ??= failure;
    this.#over.abort();
  }

  #announce(address: string, pod: string, ports: readonly Ports[]): void {
    const { world, format } = this.#context;
    const host = address.includes(":") ? `[${address}]` : address;
    if (format === "json" || format === "yaml") {
      const rows = ports.map(({ local, remote }) => ({ address, port: local, pod, remotePort: remote }));
      world.stdout.write(renderDocument(format, rows));
      return;
    }
    for (const { local, remote } of ports) world.stdout.write(`${host}:${local} → ${pod}:${remote}\n`);
  }

  #report(what: unknown): void {
    const text = messageOf(what);
    this.#context.world.stderr.write(`forage: ${plainText(text)}\n`);
  }
}
