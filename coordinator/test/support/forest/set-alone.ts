import { ForageResource } from "@forage/proto/forest/v1/forage";
import type { FieldSchema } from "@forage/proto/forest-schema";
import { type Draft, fieldsOf, setField } from "./fields.ts";
import { samplesOf, valuesOf } from "./samples.ts";

/** A field of a message, and the path to it from a resource. */
export interface FieldChain {
  /** The names of the fields, outermost first. */
  readonly names: readonly string[];
  readonly steps: readonly { readonly type: string; readonly field: FieldSchema }[];
}

const ROOT = "forest.v1.ForageResource";

/** Returns every field of a resource at any depth. */
export function everyField(type = ROOT, before: FieldChain = { names: [], steps: [] }): FieldChain[] {
  return fieldsOf(type).flatMap((field) => {
    const chain = {
      names: [...before.names, field.name],
      steps: [...before.steps, { type, field }],
    };
    return [chain, ...(field.kind === "message" ? everyField(field.type, chain) : [])];
  });
}

/** Returns values to test in the last field of a chain. Messages contain their required fields. */
export function valuesAt({ names, steps }: FieldChain): readonly unknown[] {
  const last = steps.at(-1);
  if (last === undefined) return [];
  const { type, field } = last;
  const path = names.join(".");
  for (const [pattern, values] of INSTEAD) if (pattern.test(path)) return values;
  return field.kind === "message" ? [baseOf(field)] : valuesOf(type, field.name);
}

/** Returns a resource in which only this field and required fields are set. */
export function resourceWith(chain: FieldChain, value: unknown): ForageResource {
  const draft = build(chain.steps, value);
  const path = chain.names.join(".");
  for (const [pattern, complete] of needs) if (pattern.test(path)) complete(specOf(draft));
  return ForageResource.fromPartial(draft);
}

/** Returns the ends of the paths of the fields that `resourceWith` sets in addition. */
export function alsoSet(chain: FieldChain): readonly string[] {
  return needs.flatMap(([pattern, , also]) => (pattern.test(chain.names.join(".")) ? [also] : []));
}

/** Reports whether no value of the field is valid in its position. */
export function isForbidden(chain: FieldChain): boolean {
  return /init_containers\.(.*_probe|lifecycle)/.test(chain.names.join("."));
}

/** Values for fields whose valid values differ from others of their type. */
const INSTEAD: readonly (readonly [RegExp, readonly unknown[]])[] = [
  [/job\.pod_config\.restart_policy$/, ["OnFailure", "Never"]],
  [/match_fields\.key$/, ["metadata.name"]],
  [/match_fields\.values$/, ["node-1"]],
];

/** Fields of other messages that a field requires. */
const needs: readonly (readonly [RegExp, (spec: Draft) => void, string])[] = [
  [
    /volume_mounts/,
    (spec) => {
      spec.volumes = [{ name: "v0", source: { $case: "emptyDir", value: {} } }];
    },
    ".volumes",
  ],
  [
    /^service\.ports\.node_port/,
    (spec) => {
      spec.type = "NodePort";
    },
    "service.type",
  ],
  [
    /target_(cpu|memory)_utilization_percent$/,
    (spec) => {
      (spec.container as Draft).resources = { requests: { cpu: "1", memory: "1Gi" } };
    },
    ".resources",
  ],
  [
    /requests\.extended$/,
    (spec) => {
      for (const container of containersIn(spec)) {
        const resources = container.resources as Draft | undefined;
        if (resources !== undefined) resources.limits = resources.requests;
      }
    },
    ".limits.extended",
  ],
];

function build([step, ...rest]: FieldChain["steps"], value: unknown): Draft {
  const draft: Draft = {};
  if (step === undefined) return draft;
  Object.assign(draft, structuredClone(samplesOf(step.type).base));
  const { field } = step;
  const inner = rest.length === 0 ? value : { ...baseOf(field), ...build(rest, value), ...named(field) };
  setField(draft, field, field.repeated ? [inner] : inner);
  if (field.name === "toleration_seconds") draft.effect = "NoExecute";
  if (field.name === "completion_mode") draft.completions = 1;
  return draft;
}

function baseOf(field: FieldSchema): Draft {
  return { ...structuredClone(samplesOf(field.type).base), ...named(field) } as Draft;
}

/**
 * Returns a unique name for a container other than the main one, or a valid key for a node's field.
 */
function named({ name }: FieldSchema): Draft {
  if (name === "sidecars" || name === "init_containers") return { name: "other" };
  return name === "match_fields" ? { key: "metadata.name", values: ["node-1"] } : {};
}

function specOf(draft: Draft): Draft {
  return (draft.spec as { readonly value: Draft }).value;
}

function containersIn(spec: Draft): Draft[] {
  const lists = [spec.container, spec.sidecars, spec.initContainers];
  return lists.flat().filter((found) => found !== undefined) as Draft[];
}
