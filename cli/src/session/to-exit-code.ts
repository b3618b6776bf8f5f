import { EXIT } from "../exit-code.ts";

/** Returns an exit code for this process. A process can end with 0 to 255; anything else becomes a failure of the session. */
export function toExitCode(code: number): number {
  return code >= 0 && code <= 255 ? code : EXIT.execFailed;
}
