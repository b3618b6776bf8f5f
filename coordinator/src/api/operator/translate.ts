import { IdentityError } from "@forage/identity";
import { CoordinatorError } from "../../errors.ts";

/** Runs what mints a token; what identity refuses is the caller's mistake, and INVALID. */
export function translate<T>(mint: () => T): T {
  try {
    return mint();
  } catch (cause) {
    if (cause instanceof IdentityError) throw new CoordinatorError("INVALID", cause.message, { cause });
    throw cause;
  }
}
