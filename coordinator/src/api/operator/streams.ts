import { LogOptions, type ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import type {
  ExecRequest,
  ExecResponse,
  LogsRequest,
  LogsResponse,
} from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import type { Tunnel, Tunnels } from "../../link/tunnels.ts";
import { assertNamespace } from "../../rpc/access.ts";
import type { CallContext } from "../../rpc/caller.ts";
import type { State } from "../../state/state.ts";
import { containerOf, findPod, nodeOfPod } from "./find.ts";

export interface StreamOptions {
  readonly state: State;
  readonly tunnels: Tunnels;
}

/** Commands are short; what is longer belongs into a file. */
const maxCommandBytes = 128 * 1024;

export async function* logs(
  request: LogsRequest,
  context: CallContext,
  options: StreamOptions,
): AsyncGenerator<LogsResponse> {
  const pod = findPod(options.state, request.namespace, request.pod);
  const container = containerOf(pod, request.container);
  const value = request.options ?? LogOptions.fromPartial({});
  const session = { podUid: pod.record.uid, container, kind: { $case: "logs", value } } as const;
  const tunnel = options.tunnels.open(nodeOfPod(pod), session, context.signal);
  try {
    for await (const { frame } of tunnel.fromAgent) {
      if (frame?.$case === "stdout" || frame?.$case === "stderr") yield { data: frame.value };
      if (frame?.$case === "end") return endOf(frame.value.error);
    }
  } finally {
    tunnel.toAgent.close();
  }
}

/** Input goes to the agent as it comes, output back; the last message is the command's own exit code. */
export async function* exec(
  requests: AsyncIterable<ExecRequest>,
  context: CallContext,
  options: StreamOptions,
): AsyncGenerator<ExecResponse> {
  const incoming = requests[Symbol.asyncIterator]();
  const first = await incoming.next();
  const start = first.done ? undefined : first.value.frame;
  if (start?.$case !== "start") throw new CoordinatorError("INVALID", "the first frame must be start");
  const { namespace, options: execOptions } = start.value;
  assertNamespace(context.caller, context.method, namespace);
  const pod = findPod(options.state, namespace, start.value.pod);
  const container = containerOf(pod, start.value.container);
  const command = execOptions?.command ?? [];
  if (execOptions === undefined || command.length === 0)
    throw new CoordinatorError("INVALID", "options.command must not be empty");
  if (Buffer.byteLength(command.join("\0")) > maxCommandBytes) {
    throw new CoordinatorError("INVALID", `options.command is longer than ${maxCommandBytes} bytes`);
  }
  const session = { podUid: pod.record.uid, container, kind: { $case: "exec", value: execOptions } } as const;
  const tunnel = options.tunnels.open(nodeOfPod(pod), session, context.signal);
  void sendInput(incoming, tunnel);
  try {
    for await (const { frame } of tunnel.fromAgent) {
      if (frame?.$case === "stdout" || frame?.$case === "stderr") yield { frame };
      if (frame?.$case === "end") {
        endOf(frame.value.error);
        yield { frame: { $case: "exitCode", value: frame.value.exitCode } };
        return;
      }
    }
  } finally {
    tunnel.toAgent.close();
  }
}

async function sendInput(incoming: AsyncIterator<ExecRequest>, tunnel: Tunnel): Promise<void> {
  while (true) {
    const next = await incoming.next();
    const frame = next.done ? undefined : next.value.frame;
    const last = next.done === true;
    const message: ServeResponse = {
      frame: last ? { $case: "stdinClosed", value: true } : inputFrame(frame),
    };
    if (message.frame !== undefined && !(await tunnel.toAgent.push(message))) return;
    if (last) return;
  }
}

function inputFrame(frame: ExecRequest["frame"]): ServeResponse["frame"] {
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

function endOf(error: string): void {
  if (error !== "") throw new CoordinatorError("FAILED_PRECONDITION", error);
}
