import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { type PodRecord, PodTemplateRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord } from "../model/codec.ts";
import { indexedTemplate } from "../model/indexed-template.ts";
import { podTemplateKey } from "../model/keys.ts";
import { type PodRef, refsOf } from "../model/pod-refs.ts";
import { workloadKey } from "../model/workload.ts";
import type { StoredRecord } from "../store/index.ts";
import type { PodEntry } from "./entries.ts";
import { groupsOfTemplate } from "./groups.ts";
import { IndexMap } from "./index-map.ts";

interface PodTemplateEntry {
  readonly key: string;
  readonly revision: number;
  readonly workload: string;
  readonly template: PodTemplate;
  /** The objects to which pods of the template refer. */
  readonly refs: readonly PodRef[];
  /** The groups of all pods of the template. */
  readonly groups: readonly string[];
  /**
   * Texts that are shared by the records of its pods. With 50,000 pods, separate copies would use 15 MB, and comparing them
   * would take most of the time.
   */
  readonly texts: Map<string, string>;
}

type SharedTexts = Pick<
  PodRecord,
  "namespace" | "workloadKind" | "workloadName" | "templateRef" | "templateHash"
>;

/** The parts of a pod's entry that depend on its template and workload alone. */
interface SharedByPods {
  readonly texts: SharedTexts;
  readonly template: PodTemplate;
  readonly refs: readonly PodRef[];
  readonly workloadKey: string;
  readonly templateGroups: readonly string[];
}

type ResolvedPod = Pick<PodEntry, "record" | "refs" | "workloadKey" | "templateGroups">;

/** The limit of shared texts. Pods of a template share few texts; further ones are not shared. */
const MAX_TEXTS = 32;

/** Holds the templates that pods share. Each is in memory once, however many pods use it. */
export class PodTemplates {
  readonly #entries = new IndexMap<PodTemplateEntry>(({ workload }) => [workload]);
  /** The shared parts of the last pod. Pods of a template mostly change one after the other. */
  #last: SharedByPods | undefined;

  /** Returns the templates of the workload with the key `namespace/kind/name`. */
  ofWorkload(key: string): { readonly key: string; readonly revision: number }[] {
    return this.#entries.group(key);
  }

  has(key: string): boolean {
    return this.#entries.get(key) !== undefined;
  }

  apply(key: string, stored: StoredRecord | undefined): void {
    this.#last = undefined;
    this.#entries.set(key, stored && entryOf(key, stored));
  }

  /**
   * Returns the record with its template added, the objects to which the template refers, and the key of its workload.
   * Records of earlier versions contain their templates.
   */
  resolve(record: PodRecord): ResolvedPod {
    const shared = isOf(record, this.#last) ? this.#last : this.#sharedOf(record);
    if (shared === undefined) {
      const { namespace, workloadKind, workloadName, template } = record;
      const refs = refsOf(namespace, template);
      return { record, refs, workloadKey: workloadKey(namespace, workloadKind, workloadName) };
    }
    this.#last = shared;
    const { texts, template, refs, workloadKey: key, templateGroups } = shared;
    const index = record.job?.index;
    const own = index === undefined ? template : indexedTemplate(template, index);
    return { record: { ...record, ...texts, template: own }, refs, workloadKey: key, templateGroups };
  }

  /** Returns the parts that pods like this one share. Undefined: its record contains its template, or the template is missing. */
  #sharedOf(record: PodRecord): SharedByPods | undefined {
    const { namespace, workloadKind, workloadName, templateRef } = record;
    const key = workloadKey(namespace, workloadKind, workloadName);
    const entry = this.#entries.get(podTemplateKey(key, templateRef));
    if (templateRef === "" || entry === undefined) return undefined;
    const { template, refs, workload, groups: templateGroups } = entry;
    const texts = sharedTexts(record, entry.texts);
    return { texts, template, refs, workloadKey: workload, templateGroups };
  }
}

/** Reports whether the pod shares these texts and their template. */
function isOf(record: PodRecord, shared: SharedByPods | undefined): shared is SharedByPods {
  return (
    shared !== undefined &&
    record.workloadName === shared.texts.workloadName &&
    record.templateRef === shared.texts.templateRef &&
    record.namespace === shared.texts.namespace &&
    record.workloadKind === shared.texts.workloadKind &&
    record.templateHash === shared.texts.templateHash
  );
}

function sharedTexts(
  { namespace, workloadKind, workloadName, templateRef, templateHash }: PodRecord,
  texts: Map<string, string>,
): SharedTexts {
  const share = (text: string): string => {
    const known = texts.get(text);
    if (known === undefined && texts.size < MAX_TEXTS) texts.set(text, text);
    return known ?? text;
  };
  return {
    namespace: share(namespace),
    workloadKind: share(workloadKind),
    workloadName: share(workloadName),
    templateRef: share(templateRef),
    templateHash: share(templateHash),
  };
}

/** Returns the template. Undefined: the record contains none, which is treated like a missing record. */
function entryOf(key: string, stored: StoredRecord): PodTemplateEntry | undefined {
  const record = decodeRecord(PodTemplateRecord, key, stored.value);
  const { namespace, workloadKind, workloadName } = record;
  const template = record.template;
  if (template === undefined) return undefined;
  const workload = workloadKey(namespace, workloadKind, workloadName);
  const refs = refsOf(namespace, template);
  return {
    key,
    revision: stored.modRevision,
    workload,
    template,
    refs,
    groups: groupsOfTemplate({ namespace, workload, refs, templateKey: key }),
    texts: new Map(),
  };
}
