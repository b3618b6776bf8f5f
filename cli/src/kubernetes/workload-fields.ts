import type { Field } from "../conversion/field.ts";
import type { Item } from "./item.ts";
import { CLAIM_FIELDS } from "./object-fields.ts";
import { LABEL_SELECTOR_FIELDS } from "./placement-fields.ts";
import { readTemplate, type Template } from "./pod-fields.ts";
import {
  type Draft,
  lost,
  NO_SCOPE,
  noEffect,
  oneOf,
  part,
  type Rules,
  readFields,
  type Scope,
  text,
  whole,
} from "./rules.ts";

const REVISIONS = noEffect("the coordinator's own setting limits the kept revisions");
const TEMPLATE = noEffect("read on its own");

const annotation =
  (name: string, unit: string): ((field: Field, into: Draft) => void) =>
  (field, into) => {
    into.annotations = { ...(into.annotations as object), [name]: `${field.whole()}${unit}` };
  };
const minReady = annotation("forage.dev/min-ready-seconds", "");

export const ROLLING_UPDATE_FIELDS: Rules = { maxSurge: text, maxUnavailable: text };
export const STRATEGY_FIELDS: Rules = { rollingUpdate: part(ROLLING_UPDATE_FIELDS), type: text };

export const DEPLOYMENT_FIELDS: Rules = {
  minReadySeconds: minReady,
  paused: lost("has no counterpart in a manifest: use forage rollout pause KIND/NAME"),
  progressDeadlineSeconds: annotation("forage.dev/progress-deadline", "s"),
  replicas: whole,
  revisionHistoryLimit: REVISIONS,
  selector: part(LABEL_SELECTOR_FIELDS),
  strategy: part(STRATEGY_FIELDS),
  template: TEMPLATE,
};

export const STATEFUL_UPDATE_FIELDS: Rules = {
  maxUnavailable: text,
  partition: lost("has no counterpart: pods have no ordinals"),
};
export const STATEFUL_STRATEGY_FIELDS: Rules = {
  rollingUpdate: part(STATEFUL_UPDATE_FIELDS),
  type: oneOf(["RollingUpdate"], "has no counterpart: changed pods are replaced", true),
};
export const CLAIM_TEMPLATE_FIELDS: Rules = {
  apiVersion: noEffect("claims have one version"),
  kind: noEffect("claims have one kind"),
  metadata: TEMPLATE,
  spec: TEMPLATE,
  status: noEffect("the server of a cluster sets it"),
};

export const STATEFUL_SET_FIELDS: Rules = {
  minReadySeconds: minReady,
  ordinals: lost("has no counterpart: pods have no ordinals"),
  persistentVolumeClaimRetentionPolicy: noEffect("claims stay until they are deleted"),
  podManagementPolicy: noEffect("all pods start at once"),
  replicas: (field, into) => {
    into.replicas = field.whole();
    if (field.whole() > 1)
      field.lose(
        "makes pods with ordinals, which Forage does not have: its replicas are equal, with names of their own",
      );
  },
  revisionHistoryLimit: REVISIONS,
  selector: part(LABEL_SELECTOR_FIELDS),
  serviceName: noEffect("a headless service has the names of its pods"),
  template: TEMPLATE,
  updateStrategy: part(STATEFUL_STRATEGY_FIELDS),
  volumeClaimTemplates: TEMPLATE,
};

export const DAEMON_SET_FIELDS: Rules = {
  minReadySeconds: minReady,
  revisionHistoryLimit: REVISIONS,
  selector: part(LABEL_SELECTOR_FIELDS),
  template: TEMPLATE,
  updateStrategy: part({ ...STATEFUL_STRATEGY_FIELDS, rollingUpdate: part(ROLLING_UPDATE_FIELDS) }),
};

export const WORKLOAD_FIELDS = {
  Deployment: DEPLOYMENT_FIELDS,
  StatefulSet: STATEFUL_SET_FIELDS,
  DaemonSet: DAEMON_SET_FIELDS,
};

/** A workload to which services and autoscalers in the files refer. */
export interface Workload {
  readonly item: Item;
  readonly template: Template;
  /** The `container_service` of a manifest. */
  readonly spec: Draft;
  /** The claims of a StatefulSet with one replica, as objects. */
  readonly claims: readonly { readonly name: string; readonly field: Field; readonly claim: Draft }[];
}

export function readWorkload(
  item: Item,
  kind: keyof typeof WORKLOAD_FIELDS,
  keysOf: Scope["keysOf"],
): Workload | undefined {
  const { spec } = item;
  const pods = spec?.get("template");
  if (spec === undefined || pods === undefined) return item.field.fail("has no spec with a template");
  const template = readTemplate(pods, keysOf);
  const read = readFields(spec, WORKLOAD_FIELDS[kind], NO_SCOPE);
  if (template === undefined) return undefined;
  checkSelector(spec, read, template);
  const restart = pods.get("spec")?.get("restartPolicy");
  if (restart !== undefined && restart.text() !== "Always") restart.fail(`must be Always for a ${kind}`);
  if (kind === "DaemonSet")
    item.field.lose(
      "a DaemonSet has no counterpart: it becomes a workload with one replica, and at most one pod on each node; scale it to the number of nodes",
    );
  const claims = kind === "StatefulSet" ? readClaims(item, spec, read) : [];
  const volumes = claims.map(({ volume, name }) => ({ name: volume, pvc: { claim_name: name } }));
  return { item, template, claims, spec: specOf(kind, read, template, volumes) };
}

function specOf(kind: string, read: Draft, template: Template, claimed: readonly Draft[]): Draft {
  const { container, sidecars, initContainers, pod } = template;
  const volumes = [...template.volumes, ...claimed];
  const annotations = { ...(pod.annotations as object), ...(read.annotations as object) };
  const strategy = kind === "Deployment" ? read.strategy : oneByOne(read.update_strategy);
  return {
    ...(read.replicas !== undefined && { scaling: { replicas: read.replicas } }),
    container,
    ...(sidecars.length > 0 && { sidecars }),
    ...(initContainers.length > 0 && { init_containers: initContainers }),
    ...(volumes.length > 0 && { volumes }),
    ...(strategy !== undefined && { update_strategy: strategy }),
    pod_config: {
      ...pod,
      ...(Object.keys(annotations).length > 0 && { annotations }),
      ...(kind === "DaemonSet" && { affinity: onePerNode(pod, template) }),
    },
  };
}

/**
 * Returns the update strategy of a StatefulSet or DaemonSet: by default, a pod is stopped before
 * its replacement starts.
 */
function oneByOne(written: unknown): Draft {
  const { rolling_update } = (written ?? {}) as { readonly rolling_update?: Draft };
  return {
    type: "RollingUpdate",
    rolling_update: { max_unavailable: "1", max_surge: "0", ...rolling_update },
  };
}

function onePerNode(pod: Draft, { labels }: Template): Draft {
  const affinity = (pod.affinity ?? {}) as {
    readonly pod_anti_affinity?: { readonly required?: readonly Draft[] };
  };
  const term = { label_selector: { match_labels: labels }, topology_key: "kubernetes.io/hostname" };
  const before = affinity.pod_anti_affinity;
  return {
    ...affinity,
    pod_anti_affinity: { ...before, required: [...(before?.required ?? []), term] },
  };
}

/** Reports a selector that does not select the workload's own pods. */
function checkSelector(spec: Field, { selector }: Draft, { labels }: Template): void {
  const { match_labels: required = {} } = (selector ?? {}) as {
    readonly match_labels?: Readonly<Record<string, string>>;
  };
  if (Object.entries(required).some(([key, value]) => labels[key] !== value))
    spec.get("selector")?.fail("does not select the labels of the template");
}

interface TemplateClaim {
  readonly volume: string;
  readonly name: string;
  readonly field: Field;
  readonly claim: Draft;
}

/** Reads the claims of a StatefulSet, with the names that they have in Kubernetes. */
function readClaims(item: Item, spec: Field, { replicas = 1 }: Draft): TemplateClaim[] {
  const field = spec.get("volumeClaimTemplates");
  const items = field?.items() ?? [];
  if (items.length > 0 && replicas !== 1) {
    field?.fail(
      `makes a claim for each of ${replicas} ordinals, which Forage does not have: write a StatefulSet with one replica for each, or mount one claim`,
    );
    return [];
  }
  return items.flatMap((each) => {
    readFields(each, CLAIM_TEMPLATE_FIELDS, NO_SCOPE);
    const volume = each.get("metadata")?.get("name")?.text();
    if (volume === undefined) return each.fail("has no metadata.name") ?? [];
    const written = each.get("spec");
    const claim = written === undefined ? {} : readFields(written, CLAIM_FIELDS, NO_SCOPE);
    return { volume, name: `${volume}-${item.name}-0`, field: each, claim };
  });
}
