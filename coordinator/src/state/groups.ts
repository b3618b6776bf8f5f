import type { RolloutRecord } from "@forage/proto/forage/store/v1/store";
import { dependenciesOf } from "../model/depends-on.ts";
import { objectKey, podTemplateKey } from "../model/keys.ts";
import type { PodRef } from "../model/pod-refs.ts";
import { certificateRefsOf } from "../model/route-refs.ts";
import { runRefsOf } from "../model/run-refs.ts";
import { workloadKey } from "../model/workload.ts";
import type { PodEntry, ResourceEntry } from "./entries.ts";

/** The names of groups by which entries of the view are found, in addition to their keys. */

export function resourceGroups({ record, workload, applied }: ResourceEntry): string[] {
  const found = [...[applied, workload].flatMap((it) => it?.refs ?? []), ...runRefsOf(record)];
  const refs = [...found, ...certificateRefsOf(record)].map((ref) => `ref:${objectKey(ref)}`);
  const { owner } = record;
  const owners = owner === undefined ? [] : [`owner:${record.namespace}/${owner.kind}/${owner.name}`];
  const needs = dependenciesOf(record).map(
    ({ kind, name }) => `needs:${workloadKey(record.namespace, kind, name)}`,
  );
  return [`ns:${record.namespace}`, ...owners, ...needs, ...targetGroups(record), ...new Set(refs)];
}

/** Returns the group of services whose target is the workload with this key. */
export function targetGroup(workload: string): string {
  return `target:${workload}`;
}

function targetGroups({ namespace, resource }: ResourceEntry["record"]): string[] {
  const spec = resource?.spec;
  if (spec?.$case !== "service") return [];
  return [targetGroup(workloadKey(namespace, "container_service", spec.value.target))];
}

/** The common parts of a template's pods. Pods whose records contain their templates have no template's key. */
interface CommonOfPods {
  readonly namespace: string;
  readonly workload: string;
  readonly refs: readonly PodRef[];
  readonly templateKey: string | undefined;
}

/** Returns the groups of all pods of a template. */
export function groupsOfTemplate({ namespace, workload, refs, templateKey }: CommonOfPods): string[] {
  const groups = [`ns:${namespace}`, `workload:${workload}`];
  for (const ref of refs) groups.push(`ref:${objectKey(ref)}`);
  if (templateKey !== undefined) groups.push(templateGroup(templateKey));
  return groups;
}

export function podGroups(pod: PodEntry): string[] {
  const { record, workloadKey: workload } = pod;
  const groups = [...(pod.templateGroups ?? groupsOfPod(pod))];
  if (record.node !== "") groups.push(`node:${record.node}`);
  else if (record.stoppingSince === undefined) groups.push("unbound", `unbound:${workload}`);
  if (record.drainingSince !== undefined && record.stoppingSince === undefined)
    groups.push("draining", `draining:${workload}`);
  return groups;
}

function groupsOfPod({ record, workloadKey: workload, refs }: PodEntry): string[] {
  const { namespace, templateRef } = record;
  const templateKey = templateRef === "" ? undefined : podTemplateKey(workload, templateRef);
  return groupsOfTemplate({ namespace, workload, refs, templateKey });
}

/** Returns the group of pods whose template is stored under the key. */
export function templateGroup(key: string): string {
  return `template:${key}`;
}

export function rolloutGroups(record: RolloutRecord): string[] {
  const named = record.resources.map((r) => `${record.namespace}/${r.kind}/${r.name}`);
  const groups = [...named.map((name) => `resource:${name}`), `ns:${record.namespace}`];
  return record.finished ? groups : [...groups, "active", ...named.map((name) => `active:${name}`)];
}
