import type { FieldChange } from "@forage/proto/forage/operator/v1/operator";
import type { ObjectRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import { titleOf } from "../../model/object-name.ts";
import type { Content } from "../../objects/vault.ts";
import type { ObjectEntry } from "../../state/entries.ts";
import type { ObjectDraft } from "./draft.ts";
import { type PutOptions, preparePut } from "./put.ts";

export interface PlannedObject {
  readonly action: "create" | "update" | "unchanged";
  readonly changes: readonly FieldChange[];
}

const ACTIONS = { created: "create", changed: "update", unchanged: "unchanged" } as const;
/** The limit of shown characters of a config map's value. */
const MAX_SHOWN = 200;

/** Returns the changes that a put of the object would make. Values of secrets and passwords are compared, but not shown. */
export function planObject(draft: ObjectDraft, options: Omit<PutOptions, "store">): PlannedObject {
  const { existing, record, action } = preparePut(draft, options);
  if (action === "unchanged") return { action, changes: [] };
  const changes = [
    ...textChanges("labels", existing?.record.labels ?? {}, draft.labels),
    ...contentChanges(draft, existing === undefined ? {} : contentOf(existing, options)),
    ...textChanges("", settingsOf(existing?.record), settingsOf(record)),
  ];
  return { action: ACTIONS[action], changes };
}

function contentOf(
  { name, record }: ObjectEntry,
  { state, vault }: Pick<PutOptions, "state" | "vault">,
): Content {
  const [newest] = record.versions;
  if (newest === undefined) return {};
  const version = state.objects.version(name, newest);
  if (version === undefined) throw new CoordinatorError("INTERNAL", `${titleOf(name)} has lost its content`);
  return vault.open(name, version);
}

function contentChanges({ name, content = {} }: ObjectDraft, before: Content): FieldChange[] {
  const isOpen = name.kind === "config_map";
  const prefix = name.kind === "registry_credential" ? "" : "data.";
  return keysOf(before, content).flatMap((key) => {
    const [old, desired] = [valueAt(before, key), valueAt(content, key)];
    if (old !== undefined && desired !== undefined && Buffer.compare(old, desired) === 0) return [];
    return [{ path: `${prefix}${key}`, before: shown(old, isOpen), after: shown(desired, isOpen) }];
  });
}

function valueAt(content: Content, key: string): Uint8Array | undefined {
  return Object.hasOwn(content, key) ? content[key] : undefined;
}

function shown(value: Uint8Array | undefined, isOpen: boolean): string | undefined {
  if (value === undefined) return undefined;
  const text = Buffer.from(value).toString();
  const isText = Buffer.compare(Buffer.from(text), value) === 0;
  if (isOpen && isText && text.length <= MAX_SHOWN) return text;
  return `(${value.byteLength} bytes${isOpen ? "" : ", not shown"})`;
}

/** Returns the settings of claims, classes and credentials as texts, by their names in the API. */
function settingsOf(record: ObjectRecord | undefined): Readonly<Record<string, string>> {
  switch (record?.spec?.$case) {
    case "claim":
      return { capacity: record.spec.value.capacity };
    case "registry": {
      const { server, username } = record.spec.value;
      return { server, username };
    }
    case "priorityClass": {
      const { value, neverPreempts, globalDefault, description } = record.spec.value;
      return {
        value: String(value),
        never_preempts: String(neverPreempts),
        global_default: String(globalDefault),
        description,
      };
    }
    default:
      return {};
  }
}

function textChanges(
  path: string,
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): FieldChange[] {
  return keysOf(before, after)
    .filter((key) => before[key] !== after[key])
    .map((key) => ({ path: path === "" ? key : `${path}.${key}`, before: before[key], after: after[key] }));
}

function keysOf(before: object, after: object): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
}
