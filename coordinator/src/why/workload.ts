import { hint } from "../model/hint.ts";
import { isImageFailure, onNodes } from "../model/image-failure.ts";
import type { PodEntry } from "../state/entries.ts";
import { type Cause, cause, type Diagnosis } from "./cause.ts";

/** A pod with its causes; they are empty for a healthy pod. */
export interface PodCauses {
  readonly pod: PodEntry;
  readonly ready: boolean;
  readonly causes: readonly Cause[];
}

/** The facts about a workload's rollout. */
export interface RolloutFacts {
  /**
   * The state: "progressing", "succeeded", "rolling back", "rolled back", "failed", or empty before
   * the start.
   */
  readonly state: string;
  readonly message: string;
  readonly paused: boolean;
  readonly canary: boolean;
  readonly waitsForPromotion: boolean;
  /** The reason why older pods must be kept for now. */
  readonly prefetchStatus: string;
  readonly rolledBackTo: number;
  /** The names of failed pods whose logs are kept. */
  readonly keptPods: readonly string[];
}

export interface WorkloadInput {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly deleting: boolean;
  /** The desired number of pods; undefined means the present number. */
  readonly replicas: number | undefined;
  readonly pods: readonly PodCauses[];
  /** The missing dependencies. */
  readonly waitsFor: readonly { readonly name: string; readonly why: string; readonly failed: boolean }[];
  readonly rollout: RolloutFacts | undefined;
  /** The autoscaler's last decision as text. */
  readonly scaled: string | undefined;
  /** The state of a job; undefined for other kinds. */
  readonly job: { readonly condition: string; readonly message: string } | undefined;
}

/** The most names in a message. */
const MAX_NAMED = 3;

/** Explains why a container service or a job is unhealthy. */
export function explainWorkload(input: WorkloadInput): Diagnosis {
  const title = `${input.kind}/${input.name}`;
  const ready = input.pods.filter((pod) => pod.ready).length;
  const causes = [...ownCauses(input), ...grouped(input.pods)];
  const scaled = input.scaled === undefined ? [] : [cause("Autoscaled", input.scaled)];
  const enough = input.replicas === undefined || ready >= input.replicas;
  const healthy = causes.length === 0 && enough;
  const counts = input.replicas === undefined ? "" : `${ready}/${input.replicas} ready`;
  if (!enough && causes.length === 0) causes.push(cause("Progressing", "its pods are being created"));
  const state =
    input.job?.condition === "Complete" ? "is complete" : healthy ? "is healthy" : "is not healthy";
  const reason = healthy ? "" : (causes[0]?.message ?? "");
  // The message of a rollout begins with the counts.
  const parts = [`${title} ${state}`, reason.startsWith(counts) ? "" : counts, reason];
  return { summary: parts.filter((part) => part !== "").join("; "), healthy, causes: [...causes, ...scaled] };
}

function ownCauses({
  namespace,
  kind,
  name,
  deleting,
  pods,
  waitsFor,
  rollout,
  job,
}: WorkloadInput): Cause[] {
  if (deleting) return [cause("Deleting", `it is being deleted; ${pods.length} of its pods are left`)];
  const found = waitsFor.map((it) =>
    cause(
      "DependencyNotMet",
      `it waits for ${it.name}: ${it.why}`,
      `${it.failed ? "it can't be met without a change: " : ""}${hint(namespace, `why ${it.name}`)}`,
    ),
  );
  if (job?.condition === "Failed")
    found.push(
      cause(
        "JobFailed",
        job.message,
        `correct it and apply it again; the logs of its pods: ${hint(namespace, `logs job/${name}`)}`,
      ),
    );
  return [...found, ...(rollout === undefined ? [] : rolloutCauses(namespace, `${kind}/${name}`, rollout))];
}

function rolloutCauses(namespace: string, title: string, rollout: RolloutFacts): Cause[] {
  const found: Cause[] = [];
  if (rollout.rolledBackTo > 0) {
    const back = rollout.state === "rolling back" ? "is being rolled back" : "was rolled back";
    const message = `it ${back} to revision ${rollout.rolledBackTo}: ${rollout.message}`;
    const logs = rollout.keptPods.map((pod) => `the failed pod's logs: ${hint(namespace, `logs ${pod}`)}`);
    const advice = "correct what is wrong with the newer version and apply it again";
    found.push(cause("RolledBack", message, advice, logs));
  } else if (rollout.state === "failed") {
    found.push(
      cause(
        "RolloutFailed",
        rollout.message,
        `correct it and apply again, or go back: ${hint(namespace, `rollout undo ${title}`)}`,
      ),
    );
  }
  if (rollout.paused)
    found.push(
      cause(
        "Paused",
        "its rollout is paused: what is lost is replaced, nothing else changes",
        hint(namespace, `rollout resume ${title}`),
      ),
    );
  if (rollout.waitsForPromotion)
    found.push(
      cause(
        "CanaryHold",
        "the first pods of the new version have been created; the rollout waits for a decision",
        `${hint(namespace, `rollout promote ${title}`)}, or ${hint(namespace, `rollout undo ${title}`)}`,
      ),
    );
  else if (rollout.canary)
    found.push(cause("Canary", "only the first pods of the new version have been created so far"));
  if (rollout.prefetchStatus !== "") found.push(cause("Prefetching", rollout.prefetchStatus));
  return found;
}

/** Groups pods by their first cause. */
function grouped(pods: readonly PodCauses[]): Cause[] {
  const groups = new Map<string, Group>();
  for (const { pod, causes } of pods) {
    const [first] = causes;
    if (first === undefined) continue;
    const { name, node } = pod.record;
    // Each message names the node of its own pod.
    const own = isImageFailure(first.reason) ? onNodes([node]) : "";
    const message = own === "" ? first.message : first.message.replace(own, "");
    const key = `${first.reason}\n${message}`;
    const group = groups.get(key) ?? { first: { ...first, message }, names: [], nodes: [] };
    group.names.push(name);
    if (own !== "") group.nodes.push(node);
    groups.set(key, group);
  }
  const byCount = [...groups.values()].sort(
    (a, b) => weight(a.first) - weight(b.first) || b.names.length - a.names.length,
  );
  return byCount.map(({ first, names, nodes }) => ({
    ...first,
    message: `${namesOf(names)}: ${first.message}${onNodes(nodes)}`,
  }));
}

interface Group {
  readonly first: Cause;
  readonly names: string[];
  /** The nodes of the pods, if they are relevant. */
  readonly nodes: string[];
}

/** Returns the weight of a cause. Pods that are starting or stopping have the least. */
function weight({ reason }: Cause): number {
  if (reason === "Stopping") return 2;
  return reason === "Starting" || reason === "Scheduling" ? 1 : 0;
}

function namesOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  const shown = names.slice(0, MAX_NAMED).join(", ");
  return `pod${names.length === 1 ? "" : "s"} ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}
