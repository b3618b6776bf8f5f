import { LogOptions } from "@forage/proto/forage/agent/v1/agent";
import type { LogsRequest, LogsResponse } from "@forage/proto/forage/operator/v1/operator";
import type { CallContext } from "../../rpc/caller.ts";
import { openSession, outputOf, type SessionsOptions } from "./sessions.ts";

export async function* logs(
  request: LogsRequest,
  context: CallContext,
  options: SessionsOptions,
): AsyncGenerator<LogsResponse> {
  const value = request.options ?? LogOptions.fromPartial({});
  const tunnel = openSession(request, { $case: "logs", value }, context, options);
  for await (const frame of outputOf(tunnel)) {
    if (frame.$case === "stdout" || frame.$case === "stderr") yield { data: frame.value };
  }
}
