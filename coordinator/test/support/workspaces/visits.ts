import ssh2 from "ssh2";
import type { Tunnel } from "../../../src/link/session-broker.ts";
import type { HollowAgent } from "../hollow-agent.ts";
import { tunnelToCommand, tunnelToPort } from "../tunnels.ts";

/**
 * Serves the sessions that the coordinator opens: every port leads to the application, and commands
 * run on this host.
 */
export function serveSessions(agent: HollowAgent, port: number): void {
  agent.onSession = ({ sessionId, kind }) => {
    const stream = agent.client.serve();
    stream.on("error", () => {});
    stream.write({ frame: { $case: "sessionId", value: sessionId } });
    const tunnel: Tunnel = kind?.$case === "exec" ? tunnelToCommand(kind.value) : tunnelToPort(port);
    stream.on("data", (frame) => void tunnel.toAgent.push(frame));
    stream.on("end", () => tunnel.toAgent.close());
    void (async () => {
      for await (const frame of tunnel.fromAgent) stream.write(frame);
      stream.end();
    })();
  };
}

/** Runs a command over SSH with the owner token as password. */
export function runOverSsh(port: number | undefined, password: string, command: string): Promise<string> {
  const client = new ssh2.Client();
  return new Promise((resolve, reject) => {
    client.on("error", reject);
    client.once("ready", () =>
      client.exec(command, (error, channel) => {
        if (error) return reject(error);
        let output = "";
        channel.on("data", (chunk: Buffer) => {
          output += chunk.toString();
        });
        channel.once("close", () => {
          client.end();
          resolve(output);
        });
        return undefined;
      }),
    );
    client.connect({ host: "127.0.0.1", port: port ?? 0, username: "meta-1", password });
  });
}
