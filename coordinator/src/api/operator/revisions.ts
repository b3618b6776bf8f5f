import type {
  ListRevisionsRequest,
  ListRevisionsResponse,
  Revision,
} from "@forage/proto/forage/operator/v1/operator";
import type { RevisionRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import { resourceKey } from "../../model/keys.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";

interface Named {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

/** Returns the container service. @throws CoordinatorError INVALID, NOT_FOUND. */
export function findService(state: ClusterView, { namespace, kind, name }: Named): ResourceEntry {
  if (namespace === "") throw new CoordinatorError("INVALID", "namespace must not be empty");
  if (kind !== "container_service")
    throw new CoordinatorError("INVALID", `only a container_service has revisions, a ${kind} has none`);
  const entry = state.resource(resourceKey(namespace, kind, name));
  if (entry === undefined)
    throw new CoordinatorError("NOT_FOUND", `namespace "${namespace}" has no ${kind}/${name}`);
  return entry;
}

/** Returns the revisions, newest first. */
export function revisionsOf(state: ClusterView, { namespace, kind, name }: Named): RevisionRecord[] {
  const entries = state.revisions.group(`workload:${workloadKey(namespace, kind, name)}`);
  return entries.map(({ record }) => record).sort((a, b) => b.number - a.number);
}

export function listRevisions(request: ListRevisionsRequest, state: ClusterView): ListRevisionsResponse {
  const { workload } = findService(state, request);
  const { namespace, kind, name } = request;
  const pods = state
    .podsOfWorkload(workloadKey(namespace, kind, name))
    .filter(({ record }) => record.stoppingSince === undefined);
  const revisions = revisionsOf(state, request).map((revision): Revision => {
    const { number, createdAt, changeCause, good, templateHash, rolloutId, resource } = revision;
    const isEffective = workload?.templateHash === templateHash;
    const hashes = isEffective ? workload.currentHashes : new Set([templateHash]);
    return {
      number,
      createdAt,
      changeCause,
      good,
      inForce: isEffective,
      templateHash,
      rolloutId,
      spec: resource,
      pods: pods.filter((pod) => hashes.has(pod.record.templateHash)).length,
    };
  });
  return { revisions };
}
