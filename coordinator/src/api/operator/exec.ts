import type { ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import type { ExecRequest, ExecResponse } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import type { CallContext } from "../../rpc/caller.ts";
import { firstOf, openSession, outputOf, type SessionsOptions, sendInput, startMissing } from "./sessions.ts";

/** The limit of a command in bytes. Longer scripts belong in a file. */
const MAX_COMMAND_BYTES = 128 * 1024;

/**
 * Runs a command in a container. Forwards input to the agent and output to the client as they arrive. The last message is
 * the exit code of the command.
 */
export async function* exec(
  requests: AsyncIterable<ExecRequest>,
  context: CallContext,
  options: SessionsOptions,
): AsyncGenerator<ExecResponse> {
  const incoming = requests[Symbol.asyncIterator]();
  const start = (await firstOf(incoming))?.frame;
  if (start?.$case !== "start") throw startMissing();
  const value = start.value.options;
  const command = value?.command ?? [];
  if (value === undefined || (command.length === 0) !== (value.attach === true))
    throw new CoordinatorError("INVALID", "options.command must not be empty, and must be empty with attach");
  if (value.attach && value.tty)
    throw new CoordinatorError("INVALID", "options.tty must not be set with attach");
  if (Buffer.byteLength(command.join("\0")) > MAX_COMMAND_BYTES) {
    throw new CoordinatorError("INVALID", `options.command is longer than ${MAX_COMMAND_BYTES} bytes`);
  }
  const tunnel = openSession(start.value, { $case: "exec", value }, context, options);
  const input = sendInput(incoming, tunnel, inputFrame);
  // A program may continue after its input ends, so a client that closes its stream has detached.
  if (value.attach) void input.then(() => tunnel.fromAgent.close());
  for await (const frame of outputOf(tunnel)) {
    if (frame.$case === "stdout" || frame.$case === "stderr") yield { frame };
    if (frame.$case === "end") yield { frame: { $case: "exitCode", value: frame.value.exitCode } };
  }
}

function inputFrame({ frame }: ExecRequest): ServeResponse["frame"] {
  switch (frame?.$case) {
    case "stdin":
    case "stdinClosed":
    case "resize":
      return frame;
    case "start":
    case undefined:
      return undefined;
    default:
      return frame satisfies never;
  }
}
