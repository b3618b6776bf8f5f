import type { ExecRequest, ExecResponse, ExecStart } from "@forage/proto/forage/operator/v1/operator";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import type { World } from "../world.ts";
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
  readonly world: Pick<World, "stdin" | "stdout" | "stderr">;
  readonly signal: AbortSignal;
}

/** Runs a command in a container: input goes in, output comes out, each only as fast as the other side takes it. Returns its exit code; undefined if the session ended without one. */
export async function runExec(call: ExecCall, options: ExecOptions): Promise<number | undefined> {
  const { world, signal, tty, stdin } = options;
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
        value: { ...options.start, options: { command: [...options.command], stdin, tty, size } },
      },
    });
    terminal?.onResize((value) => call.write({ frame: { $case: "resize", value } }));
    const stopInput = stdin ? sendInput(call, world.stdin) : undefined;
    try {
      return await receive(call, world, signal);
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
function sendInput(call: ExecCall, stdin: World["stdin"]): () => void {
  const onData = (chunk: Buffer): void => {
    let flowing = true;
    for (let start = 0; start < chunk.length; start += MAX_FRAME_BYTES) {
      const value = chunk.subarray(start, start + MAX_FRAME_BYTES);
      flowing = call.write({ frame: { $case: "stdin", value } });
    }
    if (!flowing) stdin.pause();
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
