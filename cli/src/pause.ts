import { setTimeout as sleep } from "node:timers/promises";
import { CliError } from "./errors.ts";

/** Waits for the given time. Rejects with the signal's reason if the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    throw signal.reason instanceof CliError ? signal.reason : error;
  }
}
