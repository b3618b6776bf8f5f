import { spawn } from "node:child_process";
import { connect } from "node:net";
import type { ExecOptions, ServeRequest, ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import { Channel } from "../../src/link/channel.ts";
import type { Tunnel } from "../../src/link/session-broker.ts";

/** Plays an agent that serves a port-forward session to a port of this host. */
export function tunnelToPort(port: number): Tunnel {
  const tunnel = { toAgent: new Channel<ServeResponse>(16), fromAgent: new Channel<ServeRequest>(16) };
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  const { toAgent, fromAgent } = tunnel;
  const end = (error: string): void =>
    void fromAgent
      .push({ frame: { $case: "end", value: { exitCode: 0, error } } })
      .then(() => fromAgent.close());
  socket.on("error", (error) => end(`port ${port} of the pod can't be reached: ${error.message}`));
  const send = async (): Promise<void> => {
    for await (const chunk of socket.iterator({ destroyOnReturn: false }))
      if (!(await fromAgent.push({ frame: { $case: "stdout", value: chunk } }))) socket.destroy();
    await fromAgent.push({ frame: { $case: "stdoutClosed", value: true } });
  };
  const receive = async (): Promise<void> => {
    for await (const { frame } of toAgent) {
      if (frame?.$case === "stdin" && !socket.write(frame.value))
        await new Promise((resolve) => socket.once("drain", resolve).once("close", resolve));
      if (frame?.$case === "stdinClosed") socket.end();
    }
    socket.destroy();
  };
  socket.once("close", () => end(""));
  send().catch(() => {});
  receive().catch(() => {});
  return tunnel;
}

/**
 * Plays an agent that serves an exec session by a process of this host. It has no terminal; sizes
 * are passed to `onResize`.
 */
export function tunnelToCommand(
  { command: [file = "", ...args] }: ExecOptions,
  onResize: (size: string) => void = () => {},
): Tunnel {
  const tunnel = { toAgent: new Channel<ServeResponse>(16), fromAgent: new Channel<ServeRequest>(16) };
  const { toAgent, fromAgent } = tunnel;
  const child = spawn(file, args, { stdio: "pipe", cwd: "/", env: { PATH: process.env.PATH ?? "" } });
  child.stdin.on("error", () => {});
  const send = async (stream: "stdout" | "stderr"): Promise<void> => {
    for await (const value of child[stream]) await fromAgent.push({ frame: { $case: stream, value } });
  };
  const exited = new Promise<number>((resolve) => child.once("exit", (code) => resolve(code ?? 137)));
  void Promise.all([send("stdout"), send("stderr")]).then(async () => {
    await fromAgent.push({ frame: { $case: "end", value: { exitCode: await exited, error: "" } } });
    fromAgent.close();
  });
  const receive = async (): Promise<void> => {
    for await (const { frame } of toAgent) {
      if (frame?.$case === "stdin" && !child.stdin.write(frame.value))
        await new Promise((resolve) => child.stdin.once("drain", resolve).once("close", resolve));
      if (frame?.$case === "stdinClosed") child.stdin.end();
      if (frame?.$case === "resize") onResize(`${frame.value.columns}x${frame.value.rows}`);
    }
    child.kill("SIGKILL");
  };
  void receive();
  return tunnel;
}
