import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { type PodRef, refsOf } from "./pod-refs.ts";

/** Returns the objects to which the pods of a job, or of a cron job's runs, refer. */
export function runRefsOf({ namespace, resource }: ResourceRecord): readonly PodRef[] {
  const spec = resource?.spec;
  if (spec?.$case !== "job" && spec?.$case !== "cronJob") return [];
  const { container, volumes, podConfig } = spec.value;
  return refsOf(namespace, { ...PodTemplate.fromPartial({}), container, volumes, podConfig });
}
