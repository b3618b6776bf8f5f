import type { SandboxMaker } from "./sandbox-maker.ts";
import type { SandboxPool } from "./sandbox-pool.ts";

export interface SpareSandboxes {
  readonly maker: Pick<SandboxMaker, "intact" | "remove">;
  readonly pool: Pick<SandboxPool, "dropBroken">;
}

export interface SpareLog {
  warn(fields: { readonly namespace: string }, event: string): void;
}

/**
 * Writes missing leases of prepared sandboxes again, so that no other sandbox gets their addresses, and removes prepared sandboxes
 * that are broken.
 */
export async function repairSpare({ maker, pool }: SpareSandboxes, log: SpareLog): Promise<void> {
  for (const { namespace } of await pool.dropBroken((spare) => maker.intact(spare))) {
    log.warn({ namespace }, "sandbox-broken");
    await maker.remove(namespace);
  }
}
