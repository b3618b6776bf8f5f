import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ResourceRecord, RevisionRecord } from "@forage/proto/forage/store/v1/store";
import { type ContainerServiceSpec, PodConfig, type UpdateStrategy } from "@forage/proto/forest/v1/forage";
import { hashMessage } from "./hash.ts";
import type { Labels } from "./labels.ts";
import type { ObjectName } from "./object-name.ts";
import { type PodRef, pinName, RESTART_ON_CHANGE, refsOf } from "./pod-refs.ts";
import { podAnnotations, type RolloutSettings, settingsOf } from "./rollout-settings.ts";
import { toEpochMs } from "./timestamp.ts";

/** A workload for its reconciler. */
export interface Workload {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly replicas: number;
  readonly strategy: UpdateStrategy | undefined;
  /** The settings from annotations. */
  readonly settings: RolloutSettings;
  readonly template: PodTemplate;
  /**
   * The hash of the pod template, which pods of the current revision have. Labels of a request are not part of it, so that
   * a change of labels restarts nothing.
   */
  readonly templateHash: string;
  /**
   * The hashes of pods that count as of the current revision: `templateHash`, and the hashes of pods that were created
   * before some of their objects existed and are not pinned to their versions, if each of these objects has had only one
   * version since.
   */
  readonly currentHashes: ReadonlySet<string>;
  /** The objects to which its pods refer. */
  readonly refs: readonly PodRef[];
  /** The labels of every pod: the request's, overridden by those of the pod template. */
  readonly labels: Labels;
}

/**
 * The limit of a service's replicas: enough for any fleet, and low enough to detect typing errors. Apply rejects more; a
 * stored record with more gets this many, so that it never blocks a loop.
 */
export const MAX_REPLICAS = 10_000;

/**
 * Returns the desired number of replicas: 1 without a scaling, 0 if it is set explicitly. With autoscaling, returns the
 * autoscaler's last decision (`scaled`), or the specified number before the first decision, within the limits.
 */
export function replicasOf({ scaling }: ContainerServiceSpec, scaled?: number): number {
  if (scaling === undefined) return 1;
  const { replicas, autoscaling } = scaling;
  if (autoscaling === undefined) return Math.min(MAX_REPLICAS, replicas);
  const { minReplicas, maxReplicas } = autoscaling;
  return Math.min(MAX_REPLICAS, maxReplicas, Math.max(1, minReplicas, scaled ?? replicas));
}

/** The versions of an object's content, newest first, and when the object was created. */
export interface ObjectHistory {
  readonly versions: readonly string[];
  readonly createdMs: number;
}

/** Information about a workload that is not part of its resource's record. */
export interface WorkloadFacts {
  /** Returns the history of a secret or config map of the workload. */
  readonly historyOf?: (name: ObjectName) => ObjectHistory | undefined;
  /** The autoscaler's last decision. */
  readonly scaled?: number | undefined;
}

/** Returns the workload of a resource. Undefined if the resource isn't a container service. */
export function workloadOf(record: ResourceRecord, facts: WorkloadFacts = {}): Workload | undefined {
  const spec = record.resource?.spec;
  if (spec?.$case !== "containerService") return undefined;
  const { historyOf = () => undefined, scaled } = facts;
  const unpinned = templateOf(spec.value, record);
  const refs = refsOf(record.namespace, unpinned);
  const pins =
    unpinned.podConfig?.annotations[RESTART_ON_CHANGE] === "false"
      ? []
      : pinsOf(refs, historyOf, record.pinnedVersions);
  const template = { ...unpinned, objectVersions: versionsOf(pins) };
  const templateHash = hashMessage(PodTemplate, template);
  return {
    namespace: record.namespace,
    kind: record.kind,
    name: record.name,
    replicas: replicasOf(spec.value, scaled),
    strategy: spec.value.updateStrategy,
    settings: settingsOf(spec.value.podConfig?.annotations),
    template,
    templateHash,
    currentHashes: new Set([templateHash, ...earlierHashes(unpinned, pins)]),
    refs,
    labels: { ...record.labels, ...spec.value.podConfig?.labels },
  };
}

/**
 * Returns a hash of what pods of the revision run, including the contents of their environment. A restart doesn't change
 * it.
 */
export function effectOf(revision: RevisionRecord): string {
  const spec = revision.resource?.spec;
  if (spec?.$case !== "containerService") return revision.templateHash;
  const template = templateOf(spec.value, { restartedAt: undefined });
  return hashMessage(PodTemplate, { ...template, objectVersions: revision.objectVersions });
}

/**
 * Returns the workload with the pod template of an earlier revision. The number of replicas and the update strategy are
 * those of `applied`.
 */
export function workloadOfRevision(applied: Workload, revision: RevisionRecord): Workload | undefined {
  const spec = revision.resource?.spec;
  if (spec?.$case !== "containerService") return undefined;
  const unpinned = templateOf(spec.value, revision);
  const { templateHash, objectVersions, labels } = revision;
  return {
    ...applied,
    template: { ...unpinned, objectVersions },
    templateHash,
    currentHashes: new Set([templateHash]),
    refs: refsOf(revision.namespace, unpinned),
    labels: { ...labels, ...spec.value.podConfig?.labels },
  };
}

function templateOf(
  { container, sidecars, initContainers, volumes, podConfig }: ContainerServiceSpec,
  { restartedAt }: Pick<ResourceRecord, "restartedAt">,
): PodTemplate {
  const restartedMs = toEpochMs(restartedAt);
  const stamp = restartedMs === undefined ? undefined : new Date(restartedMs).toISOString();
  return {
    container,
    sidecars,
    initContainers,
    volumes,
    podConfig: configOf(podConfig, stamp),
    objectVersions: {},
    providedVolumes: [],
  };
}

function configOf(config: PodConfig | undefined, stamp: string | undefined): PodConfig | undefined {
  if (config === undefined && stamp === undefined) return undefined;
  const annotations = podAnnotations(config?.annotations ?? {}, stamp);
  return { ...(config ?? PodConfig.fromPartial({})), annotations };
}

interface Pin extends ObjectHistory {
  readonly name: string;
}

function pinsOf(
  refs: readonly PodRef[],
  historyOf: (name: ObjectName) => ObjectHistory | undefined,
  pinned: ResourceRecord["pinnedVersions"],
): readonly Pin[] {
  return refs.flatMap((ref) => {
    if (!ref.env) return [];
    const history = historyOf(ref);
    const pin = pinned[pinName(ref)];
    const [newest = ""] = history?.versions ?? [];
    // Two versions keep `earlierHashes` from assuming that a pod is older than the object.
    if (pin !== undefined && pin.insteadOf === newest)
      return [{ versions: [pin.version, newest], createdMs: history?.createdMs ?? 0, name: pinName(ref) }];
    return history === undefined || history.versions.length === 0 ? [] : [{ ...history, name: pinName(ref) }];
  });
}

function versionsOf(pins: readonly Pin[]): Record<string, string> {
  return Object.fromEntries(pins.map(({ name, versions }) => [name, versions[0] ?? ""]));
}

/**
 * Returns the hashes of templates without the pins of objects that may be newer than a pod. Objects are created one after
 * another, so a pod that was created before one of them was also created before all later ones.
 */
function earlierHashes(template: PodTemplate, pins: readonly Pin[]): string[] {
  const fresh = pins.filter(({ versions }) => versions.length === 1);
  fresh.sort((a, b) => b.createdMs - a.createdMs || (a.name < b.name ? -1 : 1));
  return fresh.map((_, index) => {
    const missing = new Set(fresh.slice(0, index + 1));
    const objectVersions = versionsOf(pins.filter((pin) => !missing.has(pin)));
    return hashMessage(PodTemplate, { ...template, objectVersions });
  });
}

export function workloadKey(namespace: string, kind: string, name: string): string {
  return `${namespace}/${kind}/${name}`;
}

/** Splits a workload's key into its parts. */
export function splitWorkloadKey(key: string): {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
} {
  const [namespace = "", kind = "", name = ""] = key.split("/");
  return { namespace, kind, name };
}
