import { constants } from "node:os";
import { RuntimeError } from "./runtime.ts";

/** Returns the signal's number. Throws START_FAILED for a name that Linux does not know. */
export function checkSignalName(name: string): number {
  const known = Object.entries(constants.signals).find(([it]) => it === name)?.[1];
  const realTime = /^SIGRTMIN\+([1-9]|[12]\d|30)$/.exec(name);
  if (known !== undefined) return known;
  if (realTime) return SIGRTMIN + Number(realTime[1]);
  throw new RuntimeError(
    "START_FAILED",
    `${JSON.stringify(name)} is not a signal: use a name such as SIGHUP`,
    {
      retryable: false,
    },
  );
}

const SIGRTMIN = 34;
