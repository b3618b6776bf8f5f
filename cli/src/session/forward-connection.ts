import type { Socket } from "node:net";
import type {
  PortForwardRequest,
  PortForwardResponse,
  PortForwardStart,
} from "@forage/proto/forage/operator/v1/operator";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { write } from "./write.ts";

export type ForwardCall = ClientDuplexStream<PortForwardRequest, PortForwardResponse>;

/** The size of one frame. The coordinator limits its buffers in frames. */
const MAX_FRAME_BYTES = 32 * 1024;

/**
 * Connects a local connection with a port of a pod. Passes on the end of each side, and reads each
 * side only as fast as the other accepts data. Resolves when both sides have ended or the local
 * side has disconnected. If the pod's side fails, resets the local side and rejects.
 */
export async function forwardConnection(
  socket: Socket,
  call: ForwardCall,
  start: PortForwardStart,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const end = (): void => over.abort();
  const leave = (): void => {
    end();
    call.cancel();
  };
  let gone = false;
  socket.on("error", () => {
    gone = true;
    leave();
  });
  signal.addEventListener("abort", leave, { once: true });
  // The loop below receives this error as well. Without a listener it would end the process.
  call.on("error", end);
  call.write({ frame: { $case: "start", value: start } });
  void sendAll(socket, call, over.signal);
  try {
    for await (const message of call) {
      const { data, closed } = message as PortForwardResponse;
      if (data.length > 0) await write(socket, data, over.signal);
      if (closed) socket.end();
    }
    socket.end();
  } catch (error) {
    // The data is incomplete, so the client must not see a regular end.
    socket.resetAndDestroy();
    if (!gone && !signal.aborted) throw error;
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
    call.end();
  }
}

async function sendAll(socket: Socket, call: ForwardCall, over: AbortSignal): Promise<void> {
  try {
    for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length; at += MAX_FRAME_BYTES) {
        const value = chunk.subarray(at, at + MAX_FRAME_BYTES);
        await writeFrame(call, { frame: { $case: "data", value } }, over);
        if (over.aborted) return;
      }
    }
    if (!over.aborted) call.write({ frame: { $case: "closed", value: true } });
  } catch {
    // The local side failed. Its own listener reports the error.
  }
}

async function writeFrame(call: ForwardCall, frame: PortForwardRequest, over: AbortSignal): Promise<void> {
  if (over.aborted || call.write(frame)) return;
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      call.off("drain", finish);
      over.removeEventListener("abort", finish);
      resolve();
    };
    call.once("drain", finish);
    over.addEventListener("abort", finish, { once: true });
  });
}
