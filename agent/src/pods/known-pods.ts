import type { KnownPod } from "../network/network.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { isLive } from "./decide/pod-view.ts";
import type { Pod, PodMemory } from "./pod.ts";
import { declaredPorts } from "./pod-ports.ts";
import type { RuntimeObserver } from "./runtime-observer.ts";

export interface RememberedPod {
  readonly uid: string;
  readonly memory: PodMemory;
  /** Undefined if the pod's record is damaged. */
  readonly pod?: Pod;
}

/**
 * Returns what the network needs to adopt the sandboxes of the host's pods. For pods without a remembered sandbox,
 * looks up the processes of their running containers.
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
      const desired = ports === undefined && pod !== undefined ? declaredPorts(pod) : [];
      const live = observer.containersOf(uid).filter(isLive);
      // If a container can't be inspected now, the network decides by its own records.
      const inspected = await Promise.all(
        live.map(({ id }) => runtime.inspect(id, signal).catch(() => undefined)),
      );
      return { ...known, desired, processes: inspected.flatMap((it) => it?.pid ?? []) };
    }),
  );
}
