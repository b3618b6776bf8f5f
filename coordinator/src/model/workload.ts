import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { ContainerServiceSpec } from "@forage/proto/forest/v1/forage";
import { hashMessage } from "./hash.ts";
import type { Labels } from "./labels.ts";
import type { ObjectName } from "./object-name.ts";
import { type PodRef, pinName, refsOf, restartOnChange } from "./pod-refs.ts";

/** A workload as its reconciler sees it. */
export interface Workload {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly replicas: number;
  readonly template: PodTemplate;
  /** Pods with this hash are of the present revision. Labels of a request are not part of it: relabelling restarts nothing. */
  readonly templateHash: string;
  /**
   * Hashes of pods that are of the present revision: `templateHash`, and those of pods that were made before some of their
   * objects existed and so were pinned to none of their versions, of which there has been only one since.
   */
  readonly currentHashes: ReadonlySet<string>;
  /** What its pods refer to. */
  readonly refs: readonly PodRef[];
  /** For every pod: the request's labels, then those of the pod template. */
  readonly labels: Labels;
}

/** A service that says nothing of scaling wants one replica; one that says 0 wants none. */
export function replicasOf(spec: ContainerServiceSpec): number {
  return spec.scaling === undefined ? 1 : spec.scaling.replicas;
}

/** What is known of an object's content: its versions, newest first, and when it came to be. */
export interface ObjectHistory {
  readonly versions: readonly string[];
  readonly createdMs: number;
}

/** Undefined when the resource isn't a workload. `historyOf` tells what there is of the secrets and config maps it names. */
export function workloadOf(
  record: ResourceRecord,
  historyOf: (name: ObjectName) => ObjectHistory | undefined = () => undefined,
): Workload | undefined {
  const spec = record.resource?.spec;
  if (spec?.$case !== "containerService") return undefined;
  const { container, sidecars, initContainers, volumes, podConfig } = spec.value;
  const unpinned: PodTemplate = {
    container,
    sidecars,
    initContainers,
    volumes,
    podConfig,
    objectVersions: {},
  };
  const refs = refsOf(record.namespace, unpinned);
  const pins = podConfig?.annotations[restartOnChange] === "false" ? [] : pinsOf(refs, historyOf);
  const template = { ...unpinned, objectVersions: versionsOf(pins) };
  const templateHash = hashMessage(PodTemplate, template);
  return {
    namespace: record.namespace,
    kind: record.kind,
    name: record.name,
    replicas: replicasOf(spec.value),
    template,
    templateHash,
    currentHashes: new Set([templateHash, ...earlierHashes(unpinned, pins)]),
    refs,
    labels: { ...record.labels, ...podConfig?.labels },
  };
}

interface Pin extends ObjectHistory {
  readonly name: string;
}

function pinsOf(
  refs: readonly PodRef[],
  historyOf: (name: ObjectName) => ObjectHistory | undefined,
): readonly Pin[] {
  return refs.flatMap((ref) => {
    const history = ref.env ? historyOf(ref) : undefined;
    return history === undefined || history.versions.length === 0 ? [] : [{ ...history, name: pinName(ref) }];
  });
}

function versionsOf(pins: readonly Pin[]): Record<string, string> {
  return Object.fromEntries(pins.map(({ name, versions }) => [name, versions[0] ?? ""]));
}

/** Objects come one after another, so a pod that was made before one of them was made before all later ones. */
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
