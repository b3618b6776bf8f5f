import type {
  ExecTaskStreamingRequest,
  ExecTaskStreamingResponse,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { RuntimeExec } from "../../runtime/runtime.ts";
import { signalOf } from "./exit.ts";

// Below gRPC's default limit for a message, and small enough that output appears without delay.
const CHUNK_MAX_BYTES = 64 * 1024;

/** Yields a command's output in order, then the end of both streams, then its exit code. */
export async function* execOutput(
  exec: RuntimeExec,
): AsyncGenerator<ExecTaskStreamingResponse, void, undefined> {
  for await (const { stream, data } of exec.output)
    for (let at = 0; at < data.length; at += CHUNK_MAX_BYTES)
      yield response({
        [stream]: { data: Buffer.from(data.subarray(at, at + CHUNK_MAX_BYTES)), close: false },
      });
  const exitCode = await exec.exitCode;
  yield response({ stdout: CLOSED });
  yield response({ stderr: CLOSED });
  yield response({ exited: true, result: { exitCode, signal: signalOf(exitCode), oomKilled: false } });
}

/**
 * Passes the client's input to the command until the client has sent everything. Input for a command that no longer
 * reads is dropped; its output continues.
 */
export async function passInput(
  requests: AsyncIterator<ExecTaskStreamingRequest>,
  exec: RuntimeExec,
  signal: AbortSignal,
): Promise<void> {
  let reads = true;
  while (!signal.aborted) {
    const { value, done } = await requests.next();
    if (done) return;
    const { stdin, ttySize } = value;
    // A message with neither field is a heartbeat.
    if (ttySize !== undefined && ttySize.width > 0 && ttySize.height > 0)
      exec.resize(ttySize.width, ttySize.height);
    if (stdin === undefined || !reads) continue;
    try {
      if (stdin.data.length > 0) await exec.write(stdin.data);
      if (stdin.close) exec.endInput();
    } catch {
      reads = false;
    }
    if (stdin.close) reads = false;
  }
}

const CLOSED = { data: Buffer.alloc(0), close: true };

function response(fields: Partial<ExecTaskStreamingResponse>): ExecTaskStreamingResponse {
  return { stdout: undefined, stderr: undefined, exited: false, result: undefined, ...fields };
}
