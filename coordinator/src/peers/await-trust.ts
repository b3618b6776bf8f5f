import type { AuthorityRoll } from "../authority/authority.ts";
import type { CoordinatorTable } from "./coordinator-table.ts";

/** Lets no change of the authorities be complete before the other coordinators accept certificates of both. */
export function awaitTrust(roll: AuthorityRoll, table: Pick<CoordinatorTable, "untilTrusted">): void {
  roll.onChange(async () => {
    const pins = roll.roots().map(({ pin }) => pin);
    // The one that is left at the end was trusted before.
    if (pins.length > 1) await table.untilTrusted(pins);
  });
}
