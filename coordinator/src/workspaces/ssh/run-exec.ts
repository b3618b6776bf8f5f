import { messageOf } from "@forage/common/message-of";
import type { ServerChannel } from "ssh2";
import type { CountBytes } from "../../forwarding/tunnel-stream.ts";
import type { Tunnel } from "../../link/session-broker.ts";

/** The exit code if the command could not run, as with OpenSSH's client. */
const FAILED = 255;

/**
 * Connects an exec session with an SSH channel until the command ends, and then sends its exit
 * code.
 */
export async function runExec(tunnel: Tunnel, channel: ServerChannel, moved: CountBytes): Promise<void> {
  const input = sendInput(tunnel, channel, moved);
  let exitCode = FAILED;
  try {
    for await (const { frame } of tunnel.fromAgent) {
      if (channel.destroyed) return;
      if (frame?.$case === "stdout" || frame?.$case === "stderr") moved("out", frame.value.length);
      if (frame?.$case === "stdout") await written(channel, channel, frame.value);
      if (frame?.$case === "stderr") await written(channel.stderr, channel, frame.value);
      if (frame?.$case !== "end") continue;
      if (frame.value.error !== "") channel.stderr.write(`${frame.value.error}\r\n`);
      else exitCode = frame.value.exitCode;
      break;
    }
  } catch (error) {
    channel.stderr.write(`${messageOf(error)}\r\n`);
  } finally {
    tunnel.toAgent.close();
    tunnel.fromAgent.close();
    // A closed channel can't receive an exit code.
    if (!channel.destroyed) {
      channel.exit(exitCode);
      channel.close();
    }
    await input;
  }
}

async function sendInput(tunnel: Tunnel, channel: ServerChannel, moved: CountBytes): Promise<void> {
  try {
    for await (const value of channel.iterator({ destroyOnReturn: false })) {
      moved("in", value.length);
      if (!(await tunnel.toAgent.push({ frame: { $case: "stdin", value } }))) return;
    }
    await tunnel.toAgent.push({ frame: { $case: "stdinClosed", value: true } });
  } catch {
    // The client has disconnected, so the command must end.
    tunnel.toAgent.close();
  }
}

/** Writes data, and waits while the client reads more slowly than the command writes. */
function written(
  stream: { write(chunk: Uint8Array): boolean; once(event: string, run: () => void): unknown },
  channel: ServerChannel,
  chunk: Uint8Array,
): Promise<void> {
  if (stream.write(chunk)) return Promise.resolve();
  return new Promise((resolve) => {
    stream.once("drain", resolve);
    channel.once("close", resolve);
  });
}
