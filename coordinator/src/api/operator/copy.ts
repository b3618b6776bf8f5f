import type { ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import type { CopyRequest, CopyResponse } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import type { CallContext } from "../../rpc/caller.ts";
import { firstOf, openSession, outputOf, type SessionsOptions, sendInput, startMissing } from "./sessions.ts";

/** The limit of paths on Linux, in bytes. */
const MAX_PATH_BYTES = 4096;
const nothing = Buffer.alloc(0);

/** Streams a tar archive into or out of a container. The copy is complete if the stream ends without an error. */
export async function* copy(
  requests: AsyncIterable<CopyRequest>,
  context: CallContext,
  options: SessionsOptions,
): AsyncGenerator<CopyResponse> {
  const incoming = requests[Symbol.asyncIterator]();
  const start = (await firstOf(incoming))?.frame;
  if (start?.$case !== "start") throw startMissing();
  const value = start.value.options;
  if (value === undefined || !value.path.startsWith("/") || value.path.includes("\0"))
    throw new CoordinatorError("INVALID", "options.path must be absolute");
  if (Buffer.byteLength(value.path) >= MAX_PATH_BYTES)
    throw new CoordinatorError("INVALID", `options.path is longer than ${MAX_PATH_BYTES - 1} bytes`);
  const tunnel = openSession(start.value, { $case: "copy", value }, context, options);
  void sendInput(incoming, tunnel, inputFrame);
  for await (const frame of outputOf(tunnel)) {
    if (frame.$case === "stdout") yield { data: frame.value, remarks: nothing };
    if (frame.$case === "stderr") yield { data: nothing, remarks: frame.value };
  }
}

function inputFrame({ frame }: CopyRequest): ServeResponse["frame"] {
  if (frame?.$case === "data") return { $case: "stdin", value: frame.value };
  return frame?.$case === "closed" ? { $case: "stdinClosed", value: true } : undefined;
}
