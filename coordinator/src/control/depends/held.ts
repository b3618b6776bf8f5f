import { isHeld } from "../../model/depends-on.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import type { State } from "../../state/state.ts";
import { type Waiting, waitsFor } from "./waits-for.ts";

/** Whether a resource makes no pods because of something that it depends on. */
export function isHeldIn(state: State): (resource: ResourceEntry) => boolean {
  return ({ record }) => {
    const key = workloadStatusKey(record.namespace, record.kind, record.name);
    return isHeld(record, state.workloadStatuses.get(key)?.record);
  };
}

/** What holds a resource back; empty: nothing. Once all was there, it isn't asked again. */
export function heldBy(resource: ResourceEntry, state: State): Waiting[] {
  return resource.record.kind !== "cron_job" && isHeldIn(state)(resource) ? waitsFor(resource, state) : [];
}
