import type { ExecRequest, ExecResponse, ExecStart } from "@forage/proto/forage/operator/v1/operator";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import type { World } from "../world.ts";
import type { DetachKeys } from "./detach-keys.ts";
import { Terminal } from "./terminal.ts";
import { write } from "./write.ts";

export type ExecCall = Pick<
  ClientDuplexStream<ExecRequest, ExecResponse>,
  "write" | "on" | "once" | "off" | "end" | "cancel" | typeof Symbol.asyncIterator
>;

/** The size of the frames in which the coordinator counts its buffers. */
const MAX_FRAME_BYTES = 32 * 1024;

export interface ExecOptions {
  readonly start: Omit<ExecStart, "options">;
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly tty: boolean;
  /** Whether the session is for the container's own program, in place of a command. */
  readonly attach?: boolean;
  /** Ends the session when the keys come in the input. */
  readonly detach?: DetachKeys | undefined;
  readonly world: Pick<World, "stdin" | "stdout" | "stderr">;
  readonly signal: AbortSignal;
}

/** Runs a command in a container: input goes in, output comes out, each only as fast as the other side takes it. Returns its exit code; undefined if the session ended without one. */
export async function runExec(call: ExecCall, options: ExecOptions): Promise<number | undefined> {
  const { world, signal, tty, stdin, attach = false, detach } = options;
  const terminal = tty ? new Terminal(world, { raw: stdin }) : undefined;
  const cancel = (): void => call.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  // The loop below gets this error too. Without a listener it would end the process.
  call.on("error", () => {});
  try {
    const size = terminal?.size();
    call.write({
      frame: {
        $case: "start",
        value: {
          ...options.start,
          options: { command: [...options.command], stdin, tty, size, ...(attach && { attach }) },
        },
      },
    });
    terminal?.onResize((value) => call.write({ frame: { $case: "resize", value } }));
    let isDetached = false;
    const onDetach = (): void => {
      isDetached = true;
      call.end();
    };
    const stopInput = stdin ? sendInput(call, world.stdin, detach, onDetach) : undefined;
    try {
      return await receive(call, world, signal);
    } catch (error) {
      if (isDetached) return undefined;
      throw error;
    } finally {
      stopInput?.();
    }
  } finally {
    terminal?.close();
    signal.removeEventListener("abort", cancel);
    call.end();
    call.cancel();
  }
}

async function receive(
  call: ExecCall,
  { stdout, stderr }: ExecOptions["world"],
  signal: AbortSignal,
): Promise<number | undefined> {
  let exitCode: number | undefined;
  for await (const message of call) {
    const { frame } = message as ExecResponse;
    if (frame?.$case === "stdout") await write(stdout, frame.value, signal);
    else if (frame?.$case === "stderr") await write(stderr, frame.value, signal);
    else if (frame?.$case === "exitCode") exitCode = frame.value;
  }
  return exitCode;
}

/** Returns how to stop. Standard input is read no faster than the call takes it. */
function sendInput(
  call: ExecCall,
  stdin: World["stdin"],
  detach: DetachKeys | undefined,
  onDetach: () => void,
): () => void {
  const onData = (input: Buffer): void => {
    const { data: chunk, isDetached } = detach?.take(input) ?? { data: input, isDetached: false };
    let flowing = true;
    for (let start = 0; start < chunk.length; start += MAX_FRAME_BYTES) {
      const value = chunk.subarray(start, start + MAX_FRAME_BYTES);
      flowing = call.write({ frame: { $case: "stdin", value } });
    }
    if (isDetached) {
      stdin.off("data", onData);
      stdin.off("end", onEnd);
      onDetach();
    } else if (!flowing) stdin.pause();
  };
  const onDrain = (): void => {
    stdin.resume();
  };
  const onEnd = (): void => {
    call.write({ frame: { $case: "stdinClosed", value: true } });
  };
  stdin.on("data", onData);
  stdin.once("end", onEnd);
  call.on("drain", onDrain);
  return () => {
    stdin.off("data", onData);
    stdin.off("end", onEnd);
    call.off("drain", onDrain);
    stdin.pause();
    // A pipe that stays open on the other side would keep us alive.
    stdin.unref?.();
  };
}
