import type { Pod } from "@forage/proto/forage/operator/v1/operator";
import type { ServiceSpec } from "@forage/proto/forest/v1/forage";
import type { Coordinator } from "../client/coordinator.ts";
import { CliError } from "../errors.ts";
import { findPod, findPodsOf, findResource } from "./find.ts";
import { parseReference } from "./reference.ts";

/** A pod to which ports are forwarded, with the meaning of port numbers for the operand. */
export interface ForwardTarget {
  readonly pod: string;
  /**
   * Whether another pod may replace this one. True for a workload or service, false for a pod given
   * by name.
   */
  readonly replaceable: boolean;
  /**
   * Maps a port of the operand to a port of the pod. Throws USAGE for a port that the service
   * lacks.
   */
  readonly portOf: (given: number) => number;
}

/** Finds the pod for an operand: `POD`, `pod/NAME`, `KIND/NAME` of a workload or `service/NAME`. */
export async function findForwardTarget(
  coordinator: Coordinator,
  namespace: string,
  text: string,
): Promise<ForwardTarget> {
  const reference = parseReference(text);
  if (reference === undefined || reference.what === "pod") {
    const { name } = await findPod(coordinator, namespace, reference?.name ?? text);
    return { pod: name, replaceable: false, portOf: (port) => port };
  }
  if (reference.what === "node")
    throw new CliError("USAGE", "nodes have no ports here: name a pod, a workload or a service");
  if (reference.kind !== "service") {
    const pod = await readyPod(coordinator, namespace, reference, text);
    return { pod, replaceable: true, portOf: (port) => port };
  }
  const { spec } = await findResource(coordinator, namespace, reference);
  const service = spec?.spec?.$case === "service" ? spec.spec.value : undefined;
  const workload = { kind: "container_service", name: service?.target ?? "" };
  const pod = await readyPod(coordinator, namespace, workload, text);
  return { pod, replaceable: true, portOf: (port) => targetPort(service, port, text) };
}

async function readyPod(
  coordinator: Coordinator,
  namespace: string,
  workload: { readonly kind: string; readonly name: string },
  text: string,
): Promise<string> {
  const pods = await findPodsOf(coordinator, namespace, workload);
  const ready = pods.find(isReady);
  if (ready !== undefined) return ready.name;
  if (pods.length === 0) await findResource(coordinator, namespace, workload);
  const why = pods.length === 0 ? "has no pods" : `has ${pods.length} pods, none of which is ready`;
  throw new CliError(
    "REFUSED",
    `${text} ${why}; see forage describe ${workload.kind}/${workload.name} -n ${namespace}`,
  );
}

function isReady({ stopping, nodeLost, status }: Pod): boolean {
  return !stopping && !nodeLost && status?.ready === true;
}

function targetPort(service: ServiceSpec | undefined, given: number, text: string): number {
  const ports = service?.ports ?? [];
  const found = ports.find(({ port }) => port === given);
  if (found !== undefined) return found.targetPort === 0 ? found.port : found.targetPort;
  throw new CliError(
    "USAGE",
    `${text} has no port ${given}; it has ${ports.map(({ port }) => port).join(", ")}`,
  );
}
