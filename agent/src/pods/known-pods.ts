import type { KnownPod } from "../network/network.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { isLive } from "./decide/pod-view.ts";
import type { Pod, PodMemory } from "./pod.ts";
import { declaredPorts } from "./pod-ports.ts";
import type { RuntimeObserver } from "./runtime-observer.ts";

export interface RememberedPod {
  readonly uid: string;
  readonly memory: PodMemory;
  /** Undefined: its record is damaged. */
  readonly pod?: Pod;
}

/**
 * Returns what the network has to know of the host's pods before it takes over their sandboxes. For pods that don't remember their
 * sandbox, the processes of their running containers are looked up.
 */
export async function knownPods(
  remembered: readonly RememberedPod[],
  { runtime, observer }: { readonly runtime: ContainerRuntime; readonly observer: RuntimeObserver },
  signal: AbortSignal,
): Promise<readonly KnownPod[]> {
  const present = remembered.filter(({ memory }) => !memory.removed);
  return Promise.all(
    present.map(async ({ uid, pod, memory: { sandbox, ports } }) => {
      const known = { podUid: uid, ports: ports ?? [] };
      if (sandbox !== undefined) return { ...known, sandbox };
      const wanted = ports === undefined && pod !== undefined ? declaredPorts(pod) : [];
      const live = observer.containersOf(uid).filter(isLive);
      // One that can't be inspected now leaves the decision to the network's own records.
      const inspected = await Promise.all(
        live.map(({ id }) => runtime.inspect(id, signal).catch(() => undefined)),
      );
      return { ...known, wanted, processes: inspected.flatMap((it) => it?.pid ?? []) };
    }),
  );
}
