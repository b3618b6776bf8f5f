import { IdentityError } from "@forage/identity";
import { CoordinatorError } from "../../errors.ts";

/** Runs a function that mints a token. Converts errors of identity to INVALID, because the caller caused them. */
export function translate<T>(mint: () => T): T {
  try {
    return mint();
  } catch (cause) {
    if (cause instanceof IdentityError) throw new CoordinatorError("INVALID", cause.message, { cause });
    throw cause;
  }
}
