import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import type { PodEntry } from "../state/entries.ts";

/**
 * Returns the status that a node would report if every step succeeded: a new pod is ready, or has
 * succeeded if it belongs to a job; a stopping pod is removed. Undefined if the status does not
 * change.
 */
export function optimisticStatus(pod: PodEntry, isNew: boolean): PodStatus | undefined {
  const { record, status } = pod;
  if (record.node === "") return undefined;
  const about = { uid: record.uid, namespace: record.namespace, name: record.name };
  if (record.stoppingSince !== undefined) return PodStatus.fromPartial({ ...about, phase: PodPhase.REMOVED });
  if (!isNew || status !== undefined) return undefined;
  const { container, sidecars = [] } = record.template ?? {};
  const containers = [container, ...sidecars].filter((it) => it !== undefined);
  if (record.job !== undefined) {
    const ended = { exitCode: 0, reason: "Completed" };
    return PodStatus.fromPartial({
      ...about,
      phase: PodPhase.SUCCEEDED,
      containers: containers.map(({ name, image }) => {
        return { name, image, state: { $case: "terminated", value: ended }, lastTermination: ended };
      }),
    });
  }
  return PodStatus.fromPartial({
    ...about,
    phase: PodPhase.RUNNING,
    ready: true,
    containers: containers.map(({ name, image }) => {
      return { name, image, ready: true, started: true, state: { $case: "running", value: {} } };
    }),
  });
}
