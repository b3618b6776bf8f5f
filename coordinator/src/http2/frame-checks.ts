import { ConnectionError } from "./connection-error.ts";
import { CODE, type Frame } from "./frames.ts";
import { dependencyOf } from "./header-block.ts";

/** Throws ConnectionError if the frame belongs to a stream and not to the connection. */
export function assertConnection({ streamId }: Frame): void {
  if (streamId !== 0)
    throw new ConnectionError(CODE.PROTOCOL_ERROR, "a frame for the connection has a stream id");
}

/** Throws ConnectionError unless the payload has this length. */
export function assertLength({ payload }: Frame, bytes: number, name: string): void {
  if (payload.length !== bytes)
    throw new ConnectionError(CODE.FRAME_SIZE_ERROR, `a ${name} frame must have ${bytes} bytes`);
}

/** Validates a PRIORITY frame, which has no effect. Throws ConnectionError. */
export function assertPriority(frame: Frame): void {
  if (frame.streamId === 0)
    throw new ConnectionError(CODE.PROTOCOL_ERROR, "a PRIORITY frame has no stream id");
  assertLength(frame, 5, "PRIORITY");
  if (dependencyOf(frame.payload) === frame.streamId)
    throw new ConnectionError(CODE.PROTOCOL_ERROR, "a stream depends on itself");
}

/** Returns the increment in a WINDOW_UPDATE frame. Throws ConnectionError. */
export function incrementOf(frame: Frame): number {
  assertLength(frame, 4, "WINDOW_UPDATE");
  return frame.payload.readUInt32BE(0) & 0x7fff_ffff;
}
