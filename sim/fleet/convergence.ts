import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { workloadStatusKey } from "../../coordinator/src/model/keys.ts";
import type { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import type { ResourceEntry } from "../../coordinator/src/state/entries.ts";
import { jobOf } from "./job-rules.ts";
import { whatIsKeptInVain } from "./kept-rules.ts";
import type { SimCoordinator } from "./sim-coordinator.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

/** The parts of a world that show whether it is at rest. */
export interface Fleet extends Pick<World, "rules" | "clients" | "nodes" | "lost"> {
  /** The coordinator that decides, if there is one. */
  readonly coordinator: SimCoordinator | undefined;
}

/** Returns a description of what is not at rest; `undefined` if everything is as desired. */
export function whatIsOpen(world: Fleet): string | undefined {
  const { rules, clients, coordinator, nodes } = world;
  const { state } = rules;
  if (!coordinator?.up) return "the coordinator is not up";
  if (clients.open > 0) return `${clients.open} calls have no answer`;
  if (clients.watching.size > 0) return `the ends of ${[...clients.watching].join(", ")} were not seen`;
  const active = state.activeRollouts();
  if (active.length > 0) return `rollouts ${active.map(({ id }) => id).join(", ")} go on`;
  for (const resource of state.resources()) {
    const open = whatResourceLacks(resource, { rules, lost: world.lost, coordinator });
    if (open !== undefined) return open;
  }
  if (world.lost !== undefined && coordinator.core.state.node(world.lost.name)?.health.ready)
    return `the loss of ${world.lost.name} is not noticed`;
  for (const { record } of state.pods())
    if (record.stoppingSince !== undefined && record.node !== world.lost?.name)
      return `pod ${record.name} is still stopping`;
  const kept = whatIsKeptInVain(state);
  if (kept !== undefined) return kept;
  for (const node of nodes) {
    if (node === world.lost) continue;
    const desired = state.podsOnNode(node.name).map(({ record }) => record.uid);
    const { pods } = node;
    if (desired.length !== pods.size || desired.some((uid) => !pods.has(uid)))
      return `node ${node.name} has ${pods.size} pods, ${desired.length} are desired`;
    if (node.ending > 0) return `${node.ending} containers of node ${node.name} have yet to end`;
    if (node.endedUnnoticed > 0)
      return `the agent of ${node.name} has yet to notice the end of ${node.endedUnnoticed} containers`;
  }
  return undefined;
}

function whatResourceLacks(
  { key, record, workload }: ResourceEntry,
  { rules, coordinator, lost }: Pick<Fleet, "rules" | "lost"> & { readonly coordinator: SimCoordinator },
): string | undefined {
  const all = rules.state.podsOfWorkload(`${record.namespace}/${record.kind}/${record.name}`);
  const pods = all.filter((pod) => pod.record.stoppingSince === undefined);
  if (record.deleting && all.every((pod) => pod.record.node === lost?.name)) return undefined;
  if (record.deleting) return `${key} is being deleted`;
  if (record.kind === "job") return whatJobLacks(record, rules.state);
  if (record.kind !== "container_service" || workload === undefined) return undefined;
  const current = pods.filter((pod) => workload.currentHashes.has(pod.record.templateHash));
  const ready = current.filter(
    (pod) =>
      pod.status?.ready === true && coordinator.core.state.node(pod.record.node)?.health.ready === true,
  );
  const { replicas } = workload;
  if (ready.length === replicas && pods.length === replicas) return undefined;
  return `${key} has ${ready.length} ready pods of ${replicas}, and ${pods.length} in all`;
}

function whatJobLacks({ namespace, name, resource }: ResourceRecord, state: ClusterView): string | undefined {
  const status = jobOf(state.workloadStatuses.get(workloadStatusKey(namespace, "job", name))?.record.status);
  if (status === undefined || status.condition === "") return `job ${name} goes on`;
  const ttl = resource?.spec?.$case === "job" ? resource.spec.value.jobConfig?.ttlSecondsAfterFinished : 0n;
  return ttl === 0n ? undefined : `job ${name} has ended and is still there`;
}

/** Checks the rules for a fleet at rest. */
export function assertConverged(world: Fleet): void {
  const open = whatIsOpen(world);
  if (open !== undefined) throw new Violation(`it did not stay at rest: ${open}`);
  const { state } = world.rules;
  for (const pod of state.pods())
    if (state.resource(`resources/${pod.workloadKey}`) === undefined)
      throw new Violation(`pod ${pod.record.name} belongs to nothing`);
  for (const id of world.clients.rollouts) {
    const rollout = state.rollout(id);
    if (rollout !== undefined && !rollout.record.finished) throw new Violation(`rollout ${id} never ended`);
  }
}
