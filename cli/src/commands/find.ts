import type { Node, Pod, Resource } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { suggest } from "../command/suggest.ts";
import { CliError } from "../errors.ts";
import { shortUid } from "../view/pods.ts";

/** The most names in a message. */
const MAX_NAMED = 5;

/**
 * Finds a pod by its name or by the beginning of its uid. If there is none, the error suggests
 * similar names.
 */
export async function findPod(coordinator: Coordinator, namespace: string, name: string): Promise<Pod> {
  const answer = await coordinator.call(operator.listPods, { ...EVERY_POD, namespace, name });
  // A kept failed pod is used only if no present pod matches.
  const pods = answer.pods.length > 0 ? answer.pods : answer.kept;
  const exact = pods.find((pod) => pod.name === name) ?? (pods.length === 1 ? pods[0] : undefined);
  if (exact !== undefined) return exact;
  if (pods.length > 1) {
    const names = pods.map((pod) => `${pod.name} (${shortUid(pod.uid)})`);
    throw new CliError(
      "AMBIGUOUS",
      `"${name}" is the prefix of the uids of ${pods.length} pods: ${shorten(names)}`,
    );
  }
  const all = await coordinator.call(operator.listPods, { ...EVERY_POD, namespace });
  const ofWorkload = all.pods.find((pod) => pod.workloadName === name);
  if (ofWorkload !== undefined) {
    throw new CliError(
      "NOT_FOUND",
      `"${name}" is not a pod; for its pods use ${ofWorkload.workloadKind}/${name}, or name one: ${shorten(all.pods.filter((pod) => pod.workloadName === name).map((pod) => pod.name))}`,
    );
  }
  throw notFound("pod", name, namespace, all.pods);
}

/** Returns all pods of one workload, oldest first. */
export async function findPodsOf(
  coordinator: Coordinator,
  namespace: string,
  workload: WorkloadReference,
): Promise<readonly Pod[]> {
  const { present } = await findPodsAndKeptOf(coordinator, namespace, workload);
  return present;
}

interface WorkloadReference {
  readonly kind: string;
  readonly name: string;
}

/** Returns all pods of one workload, followed by its kept failed pods, each oldest first. */
export async function findPodsAndKeptOf(
  coordinator: Coordinator,
  namespace: string,
  { kind, name }: WorkloadReference,
): Promise<{ readonly present: readonly Pod[]; readonly kept: readonly Pod[] }> {
  const request = { ...EVERY_POD, namespace, workload: name };
  const { pods, kept } = await coordinator.call(operator.listPods, request);
  return { present: oldestFirst(pods, kind), kept: oldestFirst(kept, kind) };
}

function oldestFirst(pods: readonly Pod[], kind: string): readonly Pod[] {
  return pods
    .filter((pod) => pod.workloadKind === kind)
    .sort(
      (a, b) =>
        Number((a.createdAt?.seconds ?? 0n) - (b.createdAt?.seconds ?? 0n)) || a.name.localeCompare(b.name),
    );
}

export async function findResource(
  coordinator: Coordinator,
  namespace: string,
  { kind, name }: { readonly kind: string; readonly name: string },
): Promise<Resource> {
  const { resources } = await coordinator.call(operator.listResources, { namespace, labels: {} });
  const ofKind = resources.filter((resource) => resource.kind === kind);
  const found = ofKind.find((resource) => resource.name === name);
  if (found === undefined) throw notFound(kind, name, namespace, ofKind);
  return found;
}

export async function findNode(coordinator: Coordinator, name: string): Promise<Node> {
  const { nodes } = await coordinator.call(operator.listNodes, {});
  const found = nodes.find((node) => node.name === name);
  if (found === undefined) throw notFound("node", name, undefined, nodes);
  return found;
}

/**
 * Returns the error for an object that does not exist, with a similar name if there is one. An
 * empty namespace means all.
 */
export function notFound(
  what: string,
  name: string,
  namespace: string | undefined,
  others: readonly { readonly name: string }[],
): CliError {
  const where = namespace === undefined || namespace === "" ? "" : ` in namespace "${namespace}"`;
  const names = [...new Set(others.map((other) => other.name))];
  const near = suggest(name, names) ?? names.find((other) => other.startsWith(name));
  const hint = near === undefined ? "" : `; did you mean "${near}"?`;
  return new CliError("NOT_FOUND", `there is no ${what} "${name}"${where}${hint}`);
}

const EVERY_POD = { labels: {}, workload: "", node: "", name: "" };

function shorten(names: readonly string[]): string {
  const rest = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
