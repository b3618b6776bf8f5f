import { CallError } from "../client/explain.ts";
import type { Context } from "../context.ts";
import { pause } from "../pause.ts";

const MAX_SENDS = 4;
const SEND_PAUSE_MS = 500;

/** Sends a request again if its answer was lost. Only for idempotent calls. */
export async function sendAgain<T>({ signal }: Context, send: () => Promise<T>): Promise<T> {
  for (let sends = 1; ; sends++) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      // If there is no connection at all from the start, the address is wrong, so that a retry is
      // useless.
      if (!error.passing || sends === MAX_SENDS || (!error.connected && sends === 1)) throw error;
      await pause(SEND_PAUSE_MS * sends, signal);
    }
  }
}
