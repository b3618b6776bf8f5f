import { EXIT } from "../exit-code.ts";

/**
 * Converts an exit code of a remote program to one of this process. Codes outside 0 to 255 become
 * the code for a failed session.
 */
export function toExitCode(code: number): number {
  return code >= 0 && code <= 255 ? code : EXIT.execFailed;
}
