import { waitFor } from "../lib/wait-for.ts";
import type { System } from "./system.ts";

/** The fields of `forage get pods -o json` that the tests read. */
export interface PodJson {
  readonly uid: string;
  readonly name: string;
  readonly workloadName: string;
  readonly createdAt: string;
  readonly keptUntil?: string;
  readonly status?: {
    readonly ready?: boolean;
    readonly phase?: string;
    readonly podIp?: string;
    readonly containers?: readonly {
      readonly containerId?: string;
      readonly restartCount?: number;
      readonly running?: { readonly startedAt?: string };
      readonly lastTermination?: { readonly finishedAt?: string };
    }[];
    readonly hostPorts?: readonly { readonly containerPort: number; readonly hostPort: number }[];
  };
}

/** Returns the pods, without failed pods that are kept after a rollback. */
export async function getPods(system: System): Promise<PodJson[]> {
  return (await listPods(system)).filter(({ keptUntil }) => keptUntil === undefined);
}

/** Returns the failed pods that are kept after a rollback. */
export async function getKeptPods(system: System): Promise<PodJson[]> {
  return (await listPods(system)).filter(({ keptUntil }) => keptUntil !== undefined);
}

function listPods(system: System): Promise<PodJson[]> {
  return system.ask<PodJson[]>(["get", "pods", "-n", "e2e"]);
}

/** Waits until there are exactly `count` pods, all ready. */
export async function waitForReadyPods(system: System, count: number, limitMs = 60_000): Promise<PodJson[]> {
  let seen: PodJson[] = [];
  await waitFor(
    async () => {
      seen = await getPods(system);
      return seen.length === count && seen.every(({ status }) => status?.ready === true);
    },
    { what: `${count} pods are ready`, limitMs, everyMs: 100, explain: () => JSON.stringify(seen) },
  );
  return seen;
}

export function containerIds(pods: readonly PodJson[]): string[] {
  return pods
    .flatMap(({ status }) => status?.containers?.map(({ containerId = "" }) => containerId) ?? [])
    .sort();
}

export function restarts(pods: readonly PodJson[]): number {
  return pods
    .flatMap(({ status }) => status?.containers ?? [])
    .reduce((sum, { restartCount = 0 }) => sum + restartCount, 0);
}
