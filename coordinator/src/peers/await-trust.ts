import type { AuthorityRoll } from "../authority/authority.ts";
import type { CoordinatorTable } from "./coordinator-table.ts";

/**
 * Delays each step of a replacement of the authority until the other coordinators accept
 * certificates of both authorities.
 */
export function awaitTrust(roll: AuthorityRoll, table: Pick<CoordinatorTable, "untilTrusted">): void {
  roll.onChange(async () => {
    const pins = roll.roots().map(({ pin }) => pin);
    // At the end one authority is left, which was already trusted.
    if (pins.length > 1) await table.untilTrusted(pins);
  });
}
