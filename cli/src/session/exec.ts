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

/** The size of one frame. The coordinator limits its buffers in frames. */
const MAX_FRAME_BYTES = 32 * 1024;

export interface ExecOptions {
  readonly start: Omit<ExecStart, "options">;
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly tty: boolean;
  /**
   * Whether the session is attached to the container's own program instead of running a command.
   * With `tty`, that program already has a terminal.
   */
  readonly attach?: boolean;
  /** With `attach`: whether the end of the input closes the program's standard input. */
  readonly endInput?: boolean;
  /** The keys in the input that end the session. */
  readonly detach?: DetachKeys | undefined;
  readonly world: Pick<World, "stdin" | "stdout" | "stderr">;
  readonly signal: AbortSignal;
}

/**
 * Runs a command in a container. Input and output are each transferred only as fast as the receiver
 * reads. Returns the exit code; undefined if the session ended without one.
 */
export async function runExec(call: ExecCall, options: ExecOptions): Promise<number | undefined> {
  const { world, signal, tty, stdin, attach = false, endInput = false, detach } = options;
  const terminal = tty ? new Terminal(world, { raw: stdin }) : undefined;
  const cancel = (): void => call.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  // The loop below receives this error as well. Without a listener it would end the process.
  call.on("error", () => {});
  try {
    const size = terminal?.size();
    call.write({
      frame: {
        $case: "start",
        value: {
          ...options.start,
          options: {
            ...{ command: [...options.command], stdin, tty: tty && !attach, size },
            ...(attach && { attach }),
            ...(endInput && { endInput }),
          },
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

/**
 * Sends standard input, no faster than the call accepts it. Returns a function that stops sending.
 */
function sendInput(
  call: ExecCall,
  stdin: World["stdin"],
  detach: DetachKeys | undefined,
  onDetach: () => void,
): () => void {
  const onData = (input: Buffer): void => {
    const { data: chunk, isDetached } = detach?.filter(input) ?? { data: input, isDetached: false };
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
    // A pipe that the other side keeps open would keep this process alive.
    stdin.unref?.();
  };
}
