import { checkSignalName } from "../../runtime/check-signal-name.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { DriverError } from "../driver-error.ts";

/** Returns the signal's full name: `hup`, `HUP` and `SIGHUP` become `SIGHUP`. Throws INVALID for an unknown name. */
export function signalName(text: string): string {
  const upper = text.trim().toUpperCase();
  const name = upper.startsWith("SIG") ? upper : `SIG${upper}`;
  try {
    checkSignalName(name);
    return name;
  } catch (cause) {
    if (!(cause instanceof RuntimeError)) throw cause;
    throw new DriverError("INVALID", `${JSON.stringify(text)} is not a signal: use a name such as SIGHUP`, {
      cause,
    });
  }
}
