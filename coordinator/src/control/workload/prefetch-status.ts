import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { isReady } from "../../endpoints/readiness.ts";
import { hashMessage } from "../../model/hash.ts";
import { imagesOf, isAskedForAlways } from "../../model/images.ts";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { Hold } from "./hold.ts";
import type { ImagesOnNode, PrefetchRequest } from "./prefetch.ts";
import { rolloutStateOf } from "./rollout-state.ts";
import { updateLimits } from "./update-limits.ts";
import type { WorkloadInput } from "./workload-input.ts";

/** The state of a rolling update that prefetching depends on. */
export interface PrefetchStatusInput {
  /** The effective workload. */
  readonly workload: Workload;
  /** Pods that are not stopping and that this evaluation doesn't stop. */
  readonly staying: readonly PodEntry[];
  readonly stopping: readonly PodEntry[];
  readonly hold: Hold;
}

/**
 * Returns the nodes on which a ready pod stops before its replacement is ready, with their progress of pulling the
 * effective revision's images. Leaves out nodes where the replacement probably won't run, and nodes whose running pods show
 * that the images are present. Pure.
 */
export function prefetchStatus(
  status: PrefetchStatusInput,
  input: WorkloadInput,
): ReadonlyMap<string, ImagesOnNode> {
  const ahead = new Map<string, ImagesOnNode>();
  const { staying, stopping } = status;
  for (const node of nodesAhead(status, input, { giving: staying, running: [staying, stopping] }))
    ahead.set(node, input.imagesOn(status.workload, node));
  return ahead;
}

/** Reports whether pods on the node may stop. A node that doesn't answer causes no delay. */
export function hasImage(images: ImagesOnNode | undefined): boolean {
  return images === undefined || images.type === "present" || images.type === "unanswered";
}

/**
 * Returns the images to request from nodes. Undefined: none. Stopping pods still count, so that their nodes keep pulling.
 */
export function prefetchRequest(input: WorkloadInput): PrefetchRequest | undefined {
  const { resource, pods } = input;
  if (resource?.workload === undefined || resource.applied === undefined || resource.record.deleting)
    return undefined;
  const { workload } = resource;
  if (pods.every((pod) => workload.currentHashes.has(pod.record.templateHash))) return undefined;
  const { hold } = rolloutStateOf(input, resource, resource.applied);
  const nodes = nodesAhead({ workload, hold }, input, { giving: pods, running: [pods] });
  return nodes.size === 0 ? undefined : { workload, nodes: [...nodes].sort() };
}

/** Describes what the rollout waits for, such as `older pods stay until 2 nodes have the image; n1: …`. Empty: nothing. */
export function describePrefetch(ahead: ReadonlyMap<string, ImagesOnNode>): string {
  const missing = [...ahead].filter(([, images]) => !hasImage(images));
  if (missing.length === 0) return "";
  const worst = missing.find(([, images]) => images.type === "failed") ?? missing[0];
  const nodes = missing.length === 1 ? "1 node" : `${missing.length} nodes`;
  return `older pods stay until ${nodes} ${missing.length === 1 ? "has" : "have"} the image; ${textOf(worst)}`;
}

/** Returns the failure of an image that neither waiting nor another node can cure. Undefined: there is none. */
export function lastingFailure(ahead: ReadonlyMap<string, ImagesOnNode>): string | undefined {
  const found = [...ahead].find(([, images]) => images.type === "failed" && images.reason !== BACK_OFF);
  return found && textOf(found);
}

/** Reports whether a node waits for an unavailable registry. */
export function waitsForImages(ahead: ReadonlyMap<string, ImagesOnNode>): boolean {
  return [...ahead.values()].some((images) => images.type === "failed" && images.reason === BACK_OFF);
}

const BACK_OFF = "ImagePullBackOff";

function textOf(entry: readonly [string, ImagesOnNode] | undefined): string {
  if (entry === undefined) return "";
  const [node, images] = entry;
  if (images.type === "failed") return `node ${node}: ${images.reason}: ${images.image}: ${images.message}`;
  const progress = images.type === "pulling" && images.message !== "" ? `: ${images.message}` : "";
  return `node ${node}: pulling${progress}`;
}

function nodesAhead(
  { workload, hold }: Pick<PrefetchStatusInput, "workload" | "hold">,
  input: WorkloadInput,
  /** Returns the pods that may replace older ones, and the pods that show which images their nodes have. */
  {
    giving,
    running,
  }: {
    readonly giving: readonly PodEntry[];
    readonly running: readonly (readonly PodEntry[])[];
  },
): Set<string> {
  const limits = updateLimits(workload.strategy, workload.replicas);
  // If no pod may be unavailable, a new pod is ready before an old one stops.
  if (hold.type === "paused" || (limits.type === "RollingUpdate" && limits.unavailable === 0))
    return new Set();
  const old = giving.filter((pod) => !workload.currentHashes.has(pod.record.templateHash));
  if (old.length === 0) return new Set();
  const ran = nodesThatRan(workload, running);
  const rulesOf = cachedRules();
  const rules = rulesOf(workload.template.podConfig);
  const nodes = new Set<string>();
  for (const pod of old) {
    const { node, stoppingSince, template } = pod.record;
    if (node === "" || ran.has(node) || nodes.has(node)) continue;
    // A stopping pod on a reachable node counts as ready, because it was until a moment ago.
    const served = stoppingSince === undefined ? isReady(pod, input.nodeReady) : input.nodeReady(node);
    if (served && rulesOf(template?.podConfig) === rules) nodes.add(node);
  }
  return nodes;
}

/**
 * Returns the nodes whose running pods prove that every image of the workload is present and won't be pulled again. Pods of
 * a revision share one template, so it is compared with the workload only once.
 */
function nodesThatRan(
  workload: Workload,
  groups: readonly (readonly PodEntry[])[],
): Pick<ReadonlySet<string>, "has"> {
  const ran = new Set<string>();
  const uses = imagesOf(workload.template);
  if (uses.some(isAskedForAlways)) return ran;
  const images = new Set(uses.map(({ image }) => image));
  const commonByTemplate = new Map<PodTemplate, readonly string[]>();
  const found = new Map<string, Set<string>>();
  for (const pods of groups)
    for (const { record, status } of pods) {
      const { node, template } = record;
      if (status?.phase !== RUNNING_PHASE || template === undefined) continue;
      const common = commonByTemplate.get(template) ?? imagesInCommon(template, images);
      commonByTemplate.set(template, common);
      if (common.length === images.size) ran.add(node);
      else if (common.length > 0) {
        const known = found.get(node) ?? new Set();
        for (const image of common) known.add(image);
        found.set(node, known);
        if (known.size === images.size) ran.add(node);
      }
    }
  return ran;
}

function imagesInCommon(template: PodTemplate, images: ReadonlySet<string>): readonly string[] {
  return [...new Set(imagesOf(template).map(({ image }) => image))].filter((image) => images.has(image));
}

/** The value of POD_PHASE_RUNNING. */
const RUNNING_PHASE = 2;

/**
 * Returns a cached `placementRules`. Pods of a revision share their configuration, which is hashed once for all of them.
 */
function cachedRules(): (config: PodConfig | undefined) => string {
  const known = new Map<PodConfig | undefined, string>();
  return (config) => {
    const rules = known.get(config) ?? placementRules(config);
    known.set(config, rules);
    return rules;
  };
}

/**
 * Returns the configuration that placement depends on, as a comparable text. If it differs from that of the old pods, new
 * pods may go to other nodes.
 */
function placementRules(config: PodConfig | undefined): string {
  if (config === undefined) return "";
  const { nodeSelector, affinity, tolerations, topologySpreadConstraints, runtimeClassName } = config;
  return hashMessage(
    PodConfig,
    PodConfig.fromPartial({
      nodeSelector,
      affinity,
      tolerations,
      topologySpreadConstraints,
      runtimeClassName,
    }),
  );
}
