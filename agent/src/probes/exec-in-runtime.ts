import type { ContainerRuntime } from "../runtime/runtime.ts";
import type { ExecInContainer } from "./exec-probe.ts";

// kubelet keeps the same amount of a probe's output.
const OUTPUT_BYTES_MAX = 10 * 1024;

/**
 * Returns a function that runs commands in the container `id`. Output beyond the first 10 KiB is read and dropped, so
 * that the command isn't blocked.
 */
export function execInRuntime(runtime: Pick<ContainerRuntime, "exec">, id: string): ExecInContainer {
  return async (command, signal) => {
    const running = runtime.exec(id, { command, stdin: false, tty: false }, signal);
    const kept: Uint8Array[] = [];
    let room = OUTPUT_BYTES_MAX;
    for await (const { data } of running.output) {
      if (room === 0) continue;
      const part = data.subarray(0, room);
      kept.push(part);
      room -= part.byteLength;
    }
    return { exitCode: await running.exitCode, output: Buffer.concat(kept).toString() };
  };
}
