import { POD_SAMPLES } from "./pod-samples.ts";
import { ROUTE_SAMPLES } from "./route-samples.ts";
import type { MessageSamples, SampleTable } from "./sample-table.ts";
import { SCHEDULING_SAMPLES } from "./scheduling-samples.ts";
import { WORKLOAD_SAMPLES } from "./workload-samples.ts";

const SAMPLES: SampleTable = { ...WORKLOAD_SAMPLES, ...POD_SAMPLES, ...SCHEDULING_SAMPLES, ...ROUTE_SAMPLES };

/**
 * Returns samples of a message by its full name. Throws for a message without samples, so that
 * every new message needs some.
 */
export function samplesOf(type: string): MessageSamples {
  const found = SAMPLES[type.replace("forest.v1.", "")];
  if (found === undefined) throw new Error(`test/support/forest has no samples of ${type}`);
  return found;
}

/** Returns valid values of a field without messages. The first one is not the default. */
export function valuesOf(type: string, field: string): readonly unknown[] {
  const found = samplesOf(type).values[field];
  if (found === undefined) throw new Error(`test/support/forest has no samples of ${type}.${field}`);
  return found;
}
