import { ConnectionError } from "./connection-error.ts";
import { CODE, MAX_FRAME_BYTES, SETTING } from "./frames.ts";

const SETTING_BYTES = 6;
const LARGEST_FRAME_BYTES = 2 ** 24 - 1;

/** The settings of the peer that affect this side. */
export interface PeerSettings {
  readonly initialWindow: number | undefined;
}

/**
 * Parses the payload of a SETTINGS frame. The sizes of header table and frames are ignored, because
 * this side uses only the minimum. Throws ConnectionError.
 */
export function readSettings(payload: Buffer): PeerSettings {
  if (payload.length % SETTING_BYTES !== 0)
    throw new ConnectionError(CODE.FRAME_SIZE_ERROR, "a SETTINGS frame ends within a setting");
  let initialWindow: number | undefined;
  for (let at = 0; at < payload.length; at += SETTING_BYTES) {
    const value = payload.readUInt32BE(at + 2);
    switch (payload.readUInt16BE(at)) {
      case SETTING.INITIAL_WINDOW_SIZE:
        initialWindow = value;
        break;
      case SETTING.ENABLE_PUSH:
        if (value > 1) throw new ConnectionError(CODE.PROTOCOL_ERROR, "ENABLE_PUSH must be 0 or 1");
        break;
      case SETTING.MAX_FRAME_SIZE:
        if (value < MAX_FRAME_BYTES || value > LARGEST_FRAME_BYTES)
          throw new ConnectionError(
            CODE.PROTOCOL_ERROR,
            `MAX_FRAME_SIZE ${value} is not between ${MAX_FRAME_BYTES} and ${LARGEST_FRAME_BYTES}`,
          );
        break;
      default:
        break;
    }
  }
  return { initialWindow };
}
