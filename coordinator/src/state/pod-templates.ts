import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { type PodRecord, PodTemplateRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord } from "../model/codec.ts";
import { indexedTemplate } from "../model/indexed-template.ts";
import { podTemplateKey } from "../model/keys.ts";
import { type PodRef, refsOf } from "../model/pod-refs.ts";
import { workloadKey } from "../model/workload.ts";
import type { StoredRecord } from "../store/index.ts";
import { IndexMap } from "./index-map.ts";

interface PodTemplateEntry {
  readonly key: string;
  readonly revision: number;
  readonly workload: string;
  readonly template: PodTemplate;
  /** The objects that pods of the template refer to. */
  readonly refs: readonly PodRef[];
  /** Texts that records of its pods repeat. With 50,000 pods one copy for each takes 15 MB, and comparing them most of the time. */
  readonly texts: Map<string, string>;
}

/** A template's pods repeat few texts; what comes on top of that many is not shared. */
const MAX_TEXTS = 32;

/** Templates that pods share. Each is in memory once, however many pods were made from it. */
export class PodTemplates {
  readonly #entries = new IndexMap<PodTemplateEntry>(({ workload }) => [workload]);

  /** Returns the templates of the workload with the key `namespace/kind/name`. */
  ofWorkload(key: string): { readonly key: string; readonly revision: number }[] {
    return this.#entries.group(key);
  }

  has(key: string): boolean {
    return this.#entries.get(key) !== undefined;
  }

  apply(key: string, stored: StoredRecord | undefined): void {
    this.#entries.set(key, stored && entryOf(key, stored));
  }

  /** Returns the record with its template in place, and what it refers to. Records of earlier versions hold their own templates. */
  resolve(record: PodRecord): { readonly record: PodRecord; readonly refs: readonly PodRef[] } {
    const { namespace, workloadKind, workloadName, templateRef, job } = record;
    const workload = workloadKey(namespace, workloadKind, workloadName);
    const entry = this.#entries.get(podTemplateKey(workload, templateRef));
    if (templateRef === "" || entry === undefined)
      return { record, refs: refsOf(namespace, record.template) };
    const { template, refs } = entry;
    const own = job?.index === undefined ? template : indexedTemplate(template, job.index);
    return { record: { ...record, ...sharedTexts(record, entry.texts), template: own }, refs };
  }
}

function sharedTexts(
  { namespace, workloadKind, workloadName, templateRef, templateHash }: PodRecord,
  texts: Map<string, string>,
): Partial<PodRecord> {
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

/** Undefined: the record holds no template. Its pods are as those whose template is gone. */
function entryOf(key: string, stored: StoredRecord): PodTemplateEntry | undefined {
  const record = decodeRecord(PodTemplateRecord, key, stored.value);
  const { namespace, workloadKind, workloadName } = record;
  const template = record.template;
  if (template === undefined) return undefined;
  return {
    key,
    revision: stored.modRevision,
    workload: workloadKey(namespace, workloadKind, workloadName),
    template,
    refs: refsOf(namespace, template),
    texts: new Map(),
  };
}
