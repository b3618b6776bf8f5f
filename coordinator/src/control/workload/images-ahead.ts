import { PodConfig } from "@forage/proto/forest/v1/forage";
import { hashMessage } from "../../model/hash.ts";
import { imagesOf, isAskedForAlways } from "../../model/images.ts";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { ImagesOnNode, PrefetchWish } from "../rollout/prefetch.ts";
import { standingOf } from "./attempt.ts";
import type { Hold } from "./hold.ts";
import { isReady } from "./readiness.ts";
import { updateLimits } from "./update-limits.ts";
import type { WorkloadInput } from "./workload-input.ts";

/** What is looked at: a roll, or as much of it as there is. */
export interface AheadLook {
  /** In force. */
  readonly workload: Workload;
  /** Pods that are neither stopping nor about to. */
  readonly staying: readonly PodEntry[];
  readonly stopping: readonly PodEntry[];
  readonly hold: Hold;
}

/**
 * Pure: the nodes on which a serving pod gives way before there is another in its place, and where they are with the images
 * of the revision in force. Only as far as the new pod is likely to come to the same node, and not where what runs there
 * already shows that it has them.
 */
export function imagesAhead(look: AheadLook, input: WorkloadInput): ReadonlyMap<string, ImagesOnNode> {
  const ahead = new Map<string, ImagesOnNode>();
  for (const node of nodesAhead(look, input, look.staying))
    ahead.set(node, input.imagesOn(look.workload, node));
  return ahead;
}

/** Whether its pods may give way. Who doesn't answer keeps nobody waiting. */
export function isThere(images: ImagesOnNode | undefined): boolean {
  return images === undefined || images.type === "present" || images.type === "unanswered";
}

/** What to ask nodes for; undefined: nothing. Pods that have yet to end still count, so that nothing is removed meanwhile. */
export function prefetchWish(input: WorkloadInput): PrefetchWish | undefined {
  const { resource, pods } = input;
  if (resource?.workload === undefined || resource.wanted === undefined || resource.record.deleting)
    return undefined;
  const { workload } = resource;
  if (pods.every((pod) => workload.currentHashes.has(pod.record.templateHash))) return undefined;
  const staying = pods.filter((pod) => pod.record.stoppingSince === undefined);
  const stopping = pods.filter((pod) => pod.record.stoppingSince !== undefined);
  const { hold } = standingOf(input, resource, resource.wanted);
  const nodes = nodesAhead({ workload, staying, stopping, hold }, input, pods);
  return nodes.size === 0 ? undefined : { workload, nodes: [...nodes].sort() };
}

/** `2 nodes don't have the image yet: n1: ImagePullBackOff: …`; empty when there is nothing to wait for. */
export function describeAhead(ahead: ReadonlyMap<string, ImagesOnNode>): string {
  const missing = [...ahead].filter(([, images]) => !isThere(images));
  if (missing.length === 0) return "";
  const worst = missing.find(([, images]) => images.type === "failed") ?? missing[0];
  const nodes = missing.length === 1 ? "1 node" : `${missing.length} nodes`;
  return `older pods stay until ${nodes} ${missing.length === 1 ? "has" : "have"} the image; ${textOf(worst)}`;
}

/** Neither waiting nor another node helps; undefined: there is hope. */
export function lastingFailure(ahead: ReadonlyMap<string, ImagesOnNode>): string | undefined {
  const found = [...ahead].find(([, images]) => images.type === "failed" && images.reason !== backOff);
  return found && textOf(found);
}

/** Whether a registry can't be had for now. */
export function waitsForImages(ahead: ReadonlyMap<string, ImagesOnNode>): boolean {
  return [...ahead.values()].some((images) => images.type === "failed" && images.reason === backOff);
}

const backOff = "ImagePullBackOff";

function textOf(entry: readonly [string, ImagesOnNode] | undefined): string {
  if (entry === undefined) return "";
  const [node, images] = entry;
  if (images.type === "failed") return `node ${node}: ${images.reason}: ${images.image}: ${images.message}`;
  const progress = images.type === "pulling" && images.message !== "" ? `: ${images.message}` : "";
  return `node ${node}: pulling${progress}`;
}

function nodesAhead(
  { workload, staying, stopping, hold }: AheadLook,
  input: WorkloadInput,
  pods: readonly PodEntry[],
): Set<string> {
  const limits = updateLimits(workload.strategy, workload.replicas);
  // With nobody missing at any time, a new pod serves before an old one goes.
  if (hold.type === "paused" || (limits.type === "RollingUpdate" && limits.unavailable === 0))
    return new Set();
  const rules = placementRules(workload.template.podConfig);
  const likely = pods.filter(({ record }) => {
    const isOld = !workload.currentHashes.has(record.templateHash);
    const isGoing = record.stoppingSince !== undefined;
    return (
      isOld &&
      (isGoing ? input.nodeReady(record.node) : true) &&
      placementRules(record.template?.podConfig) === rules
    );
  });
  const serving = likely.filter(
    (pod) => pod.record.stoppingSince !== undefined || isReady(pod, input.nodeReady),
  );
  const nodes = serving.map(({ record }) => record.node).filter((node) => node !== "");
  return new Set(nodes.filter((node) => !hasRun(workload, node, [...staying, ...stopping])));
}

/** Pods that run there have the same images, which the registry isn't asked for again. */
function hasRun(workload: Workload, node: string, pods: readonly PodEntry[]): boolean {
  const there = pods.filter(({ record, status }) => record.node === node && status?.phase === runningPhase);
  const images = new Set(
    there
      .flatMap(({ record }) => (record.template ? imagesOf(record.template) : []))
      .map(({ image }) => image),
  );
  return imagesOf(workload.template).every((use) => images.has(use.image) && !isAskedForAlways(use));
}

/** POD_PHASE_RUNNING. */
const runningPhase = 2;

/** What says where pods may run: with other rules than the old ones', new pods go elsewhere. */
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
