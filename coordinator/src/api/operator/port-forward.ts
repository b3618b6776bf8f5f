import type { ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import type { PortForwardRequest, PortForwardResponse } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import type { CallContext } from "../../rpc/caller.ts";
import { firstOf, openSession, outputOf, type SessionsOptions, sendInput, startMissing } from "./sessions.ts";

const MAX_PORT = 65_535;
const nothing = Buffer.alloc(0);

/** Forwards one TCP connection. The end of each direction is forwarded separately. */
export async function* portForward(
  requests: AsyncIterable<PortForwardRequest>,
  context: CallContext,
  options: SessionsOptions,
): AsyncGenerator<PortForwardResponse> {
  const incoming = requests[Symbol.asyncIterator]();
  const start = (await firstOf(incoming))?.frame;
  if (start?.$case !== "start") throw startMissing();
  const { namespace, pod, port } = start.value;
  if (port < 1 || port > MAX_PORT) throw new CoordinatorError("INVALID", `port must be 1 to ${MAX_PORT}`);
  const kind = { $case: "portForward", value: { port } } as const;
  const tunnel = openSession({ namespace, pod, container: "" }, kind, context, options);
  void sendInput(incoming, tunnel, inputFrame);
  for await (const frame of outputOf(tunnel)) {
    if (frame.$case === "stdout") yield { data: frame.value, closed: false };
    if (frame.$case === "stdoutClosed") yield { data: nothing, closed: true };
  }
}

function inputFrame({ frame }: PortForwardRequest): ServeResponse["frame"] {
  if (frame?.$case === "data") return { $case: "stdin", value: frame.value };
  return frame?.$case === "closed" ? { $case: "stdinClosed", value: true } : undefined;
}
