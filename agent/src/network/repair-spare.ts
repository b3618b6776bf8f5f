import type { Log } from "@forage/common/log";
import type { SandboxMaker } from "./sandbox-maker.ts";
import type { SandboxPool } from "./sandbox-pool.ts";

export interface SpareSandboxes {
  readonly maker: Pick<SandboxMaker, "intact" | "remove">;
  readonly pool: Pick<SandboxPool, "dropBroken">;
}

/**
 * Restores missing leases of prepared sandboxes, so that no other sandbox gets their addresses, and removes broken
 * prepared sandboxes.
 */
export async function repairSpare({ maker, pool }: SpareSandboxes, log: Pick<Log, "warn">): Promise<void> {
  for (const { namespace } of await pool.dropBroken((spare) => maker.intact(spare))) {
    log.warn({ event: "sandbox-broken", namespace });
    await maker.remove(namespace);
  }
}
