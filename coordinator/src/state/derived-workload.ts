import { messageOf } from "@forage/common/message-of";
import type {
  ResourceRecord,
  RevisionRecord,
  ScaleRecord,
  WorkloadStatusRecord,
} from "@forage/proto/forage/store/v1/store";
import { effectiveWorkload } from "../model/effective-workload.ts";
import { revisionKey, scaleKey, workloadStatusKey } from "../model/keys.ts";
import { workloadOf } from "../model/workload.ts";
import type { ResourceEntry } from "./entries.ts";
import type { ObjectsView } from "./objects-view.ts";
import type { RecordView } from "./record-view.ts";

interface View {
  readonly objects: ObjectsView;
  readonly scales: RecordView<ScaleRecord>;
  readonly workloadStatuses: RecordView<WorkloadStatusRecord>;
  readonly revisions: RecordView<RevisionRecord>;
}

/**
 * Derives the workload of a resource's pods from its record and the decisions about it. If that fails, there is no
 * workload, and `fault` keeps reconcilers from treating that as a decision.
 */
export function derivedWorkload(
  record: ResourceRecord,
  view: View,
): Pick<ResourceEntry, "workload" | "applied" | "fault"> {
  try {
    return workloadsOf(record, view);
  } catch (error) {
    return { workload: undefined, applied: undefined, fault: messageOf(error) };
  }
}

function workloadsOf(record: ResourceRecord, view: View): Pick<ResourceEntry, "workload" | "applied"> {
  const { namespace, kind, name } = record;
  const applied = workloadOf(record, {
    historyOf: (object) => view.objects.historyOf(object),
    scaled: view.scales.get(scaleKey(namespace, name))?.record.replicas,
  });
  const status = view.workloadStatuses.get(workloadStatusKey(namespace, kind, name))?.record.status;
  const decided = status?.$case === "containerService" ? status.value : undefined;
  const revisionOf = (number: number) =>
    view.revisions.get(revisionKey(namespace, kind, name, number))?.record;
  return { workload: applied && effectiveWorkload(record, applied, decided, revisionOf), applied };
}
