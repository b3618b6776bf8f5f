import type { ClaimSources } from "./find-claims.ts";
import { findClaims } from "./find-claims.ts";
import type { FoundPod, KnownPod, PodSandbox } from "./network.ts";
import { namespacePath } from "./network-namespaces.ts";
import { portsOf, readPublished } from "./published-ports.ts";
import type { RunCommand } from "./run-command.ts";
import type { SandboxMaker } from "./sandbox-maker.ts";
import type { SandboxRecord } from "./sandbox-records.ts";

export interface TakeOverOptions extends Omit<ClaimSources, "loaded" | "intact" | "checkIntact"> {
  readonly maker: SandboxMaker;
  /** Removes addresses that the pod network no longer contains. */
  readonly asReachable: (record: SandboxRecord) => SandboxRecord;
  readonly isIpv6: boolean;
  readonly poolSize: number;
}

export interface TakenOver {
  /** Sandboxes by pod uid. */
  readonly claims: ReadonlyMap<string, SandboxRecord>;
  /** Sandboxes that an earlier agent prepared and that were never used. */
  readonly spare: readonly SandboxRecord[];
  readonly removed: number;
}

/** Adopts the sandboxes of the known pods and spare ones, and removes all others of this instance. */
export async function adoptSandboxes(
  known: readonly KnownPod[],
  options: TakeOverOptions,
): Promise<TakenOver> {
  const { maker, asReachable, isIpv6, poolSize, noteDamage } = options;
  const loaded = await options.records.load();
  const records = loaded.records.map(asReachable);
  const intact = await maker.intact(records);
  const found = await findClaims(known, {
    ...options,
    intact,
    loaded: { ...loaded, records },
    checkIntact: (unsure) => maker.intact(unsure),
  });
  const claims = new Map([...found].map(([podUid, record]) => [podUid, asReachable(record)]));
  const claimed = new Set([...claims.values()].map(({ namespace }) => namespace));
  const unused = intact.filter(
    ({ namespace, podUid, address6 }) =>
      podUid === undefined && !claimed.has(namespace) && (address6 !== undefined) === isIpv6,
  );
  const spare = unused.slice(0, poolSize);
  for (const [namespace, reason] of loaded.damaged) {
    if (!claimed.has(namespace))
      noteDamage(options.records.pathOf(namespace), reason, "no pod is in this sandbox, so it is removed");
  }
  const recorded = [...records.map(({ namespace }) => namespace), ...loaded.damaged.keys()];
  const removed = await maker.removeAllBut([...claims.values(), ...spare], recorded);
  return { claims, spare, removed };
}

/**
 * Returns the sandboxes and host ports of pods that have lost their memory, read from the sandboxes' records and the
 * kernel's table.
 */
export async function findForgotten(
  known: readonly KnownPod[],
  claims: ReadonlyMap<string, SandboxRecord>,
  { run, table }: { readonly run: RunCommand; readonly table: string },
): Promise<readonly FoundPod[]> {
  const forgotten = known.filter(({ podUid, sandbox }) => sandbox === undefined && claims.has(podUid));
  if (forgotten.length === 0) return [];
  const published = await readPublished(run, table);
  return forgotten.flatMap(({ podUid, desired = [] }) => {
    const record = claims.get(podUid);
    if (record === undefined) return [];
    const ports = portsOf(published, record.address, desired);
    return [{ podUid, sandbox: sandboxOf(podUid, record), ...(ports && { ports }) }];
  });
}

export function sandboxOf(podUid: string, { namespace, address, address6 }: SandboxRecord): PodSandbox {
  return {
    podUid,
    namespacePath: namespacePath(namespace),
    address,
    ...(address6 !== undefined && { address6 }),
  };
}
