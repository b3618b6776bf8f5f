import type { Object as ObjectMessage } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import { titleOf } from "../../model/object-name.ts";
import { BUILT_IN_CLASSES } from "../../model/priority.ts";
import type { Vault } from "../../objects/vault.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ObjectEntry } from "../../state/entries.ts";

/** Returns an object without its content, with the content's size. */
export function objectView(entry: ObjectEntry, state: ClusterView): ObjectMessage {
  const { record, name } = entry;
  return {
    namespace: record.namespace,
    name: record.name,
    labels: record.labels,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
    generation: record.generation,
    version: record.versions[0] ?? "",
    usedBy: state
      .podsReferring(name)
      .map((pod) => pod.record.name)
      .sort(),
    spec: specOf(entry, state),
  };
}

/** Returns the object with all values. The caller has checked that they may be shown. */
export function openView(entry: ObjectEntry, state: ClusterView, vault: Vault): ObjectMessage {
  const { name, record } = entry;
  const view = objectView(entry, state);
  const version = state.objects.version(name, record.versions[0] ?? "");
  if (version === undefined) throw new CoordinatorError("INTERNAL", `${titleOf(name)} has lost its content`);
  const data = vault.open(name, version);
  switch (view.spec?.$case) {
    case "secret":
    case "configMap":
      return { ...view, spec: { ...view.spec, value: { ...view.spec.value, data } } };
    case "registryCredential": {
      const password = data.password?.toString() ?? "";
      return { ...view, spec: { ...view.spec, value: { ...view.spec.value, password } } };
    }
    default:
      return view;
  }
}

/** Returns the built-in classes in the form of stored ones. */
export function builtInViews(): ObjectMessage[] {
  return Object.entries(BUILT_IN_CLASSES).map(([name, value]) => ({
    namespace: "",
    name,
    labels: {},
    createdAt: undefined,
    updatedAt: undefined,
    generation: 0n,
    version: "",
    usedBy: [],
    spec: { $case: "priorityClass", value: { ...value } },
  }));
}

function specOf({ name, record }: ObjectEntry, state: ClusterView): NonNullable<ObjectMessage["spec"]> {
  const { spec, sizes } = record;
  switch (spec?.$case) {
    case "registry":
      return { $case: "registryCredential", value: { ...spec.value, password: "" } };
    case "claim": {
      const { capacity, node, deleting } = spec.value;
      const reported = state.node(node)?.report?.report?.claims ?? [];
      const here = reported.find((it) => it.namespace === name.namespace && it.name === name.name);
      return { $case: "claim", value: { capacity, node, deleting, usedBytes: here?.usedBytes ?? 0n } };
    }
    case "priorityClass":
      return { $case: "priorityClass", value: { ...spec.value } };
    case undefined:
      return { $case: name.kind === "secret" ? "secret" : "configMap", value: { data: {}, sizes } };
    default:
      return spec satisfies never;
  }
}
