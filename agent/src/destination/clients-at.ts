import type { Clock } from "../clock.ts";
import type { RelayClient } from "./relay.ts";

export interface PodAddresses {
  readonly namespace: string;
  readonly podIps: readonly string[];
  /** The pod's phase. Pods that have already removed their network don't count. */
  readonly phase: string;
}

/** The age at which the list of clients is rebuilt, because pods start and end within seconds. */
const FRESH_MS = 1_000;
/** The shortest interval between rebuilds for unknown addresses. */
const MISS_MS = 100;

/**
 * Returns the client at an address of this host: a pod, or the host's own processes for a loopback address. Undefined for any
 * other.
 */
export function clientsAt(
  pods: () => readonly PodAddresses[],
  clock: Clock,
): (address: string) => RelayClient | undefined {
  let madeMs = Number.NEGATIVE_INFINITY;
  let namespaces = new Map<string, string>();
  const refresh = (maxAgeMs: number): void => {
    if (clock.monotonicMs() - madeMs < maxAgeMs) return;
    madeMs = clock.monotonicMs();
    namespaces = new Map();
    for (const { namespace, podIps, phase } of pods())
      if (phase !== "REMOVED") for (const ip of podIps) namespaces.set(ip, namespace);
  };
  return (address) => {
    if (address === "::1" || /^127\.[\d.]+$/.test(address)) return { address, namespace: undefined };
    refresh(FRESH_MS);
    if (!namespaces.has(address)) refresh(MISS_MS);
    const namespace = namespaces.get(address);
    return namespace === undefined ? undefined : { address, namespace };
  };
}
