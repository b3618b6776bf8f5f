import { AttemptState } from "@forage/proto/forage/store/v1/store";
import { attemptAt } from "../../model/in-force.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import type { State } from "../../state/state.ts";

/** Whether what the resource asks for has failed: applied again as it is, it is tried again. */
export function triesAgain(state: State, { record, wanted }: ResourceEntry): boolean {
  const key = workloadStatusKey(record.namespace, record.kind, record.name);
  const status = state.workloadStatuses.get(key)?.record.status;
  if (status?.$case !== "containerService" || wanted === undefined) return false;
  const attempt = attemptAt(status.value, record, wanted);
  const { ROLLING_BACK, ROLLED_BACK, FAILED } = AttemptState;
  return [ROLLING_BACK, ROLLED_BACK, FAILED].some((state) => state === attempt?.state);
}
