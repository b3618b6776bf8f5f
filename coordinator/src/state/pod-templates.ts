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
  /** The objects to which pods of the template refer. */
  readonly refs: readonly PodRef[];
  /**
   * Texts that are shared by the records of its pods. With 50,000 pods, separate copies would use 15 MB, and comparing them
   * would take most of the time.
   */
  readonly texts: Map<string, string>;
}

/** The limit of shared texts. Pods of a template share few texts; further ones are not shared. */
const MAX_TEXTS = 32;

/** Holds the templates that pods share. Each is in memory once, however many pods use it. */
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

  /**
   * Returns the record with its template added, and the objects to which the template refers. Records of earlier versions
   * contain their templates.
   */
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

/** Returns the template. Undefined: the record contains none, which is treated like a missing record. */
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
