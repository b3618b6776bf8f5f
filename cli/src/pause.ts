import { setTimeout as sleep } from "node:timers/promises";
import { CliError } from "./errors.ts";

/** Rejects with the signal's reason when it is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    throw signal.reason instanceof CliError ? signal.reason : error;
  }
}
