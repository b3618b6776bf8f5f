import { milliCpuOf, wholeUnitsOf } from "@forage/scheduler";
import type { Clock } from "../clock.ts";
import type { Settings } from "../settings.ts";
import { HostCapacity } from "./host-capacity.ts";
import type { Reserve } from "./node-resources.ts";
import type { HostReader } from "./read-host.ts";

export interface OpenCapacityOptions {
  readonly config: Pick<Settings, "nodeName" | "dataDir" | "podsMax" | "reserve">;
  readonly clock: Clock;
  readonly hostReader: HostReader;
}

/** Opens the capacity with the operator's settings. */
export function openCapacity({ config, clock, hostReader }: OpenCapacityOptions): Promise<HostCapacity> {
  const { cpu, memory, "ephemeral-storage": disk } = config.reserve;
  const reserve: Partial<Reserve> = {
    ...(cpu !== undefined && { cpuMilli: milliCpuOf(cpu) }),
    ...(memory !== undefined && { memoryBytes: wholeUnitsOf(memory) }),
    ...(disk !== undefined && { diskBytes: wholeUnitsOf(disk) }),
  };
  return HostCapacity.open(
    { nodeName: config.nodeName, storagePath: config.dataDir, maxPods: config.podsMax, reserve },
    { reader: hostReader, clock },
  );
}
