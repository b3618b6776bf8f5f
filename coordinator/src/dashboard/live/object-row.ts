import type { Object as ObjectView } from "@forage/proto/forage/operator/v1/operator";
import { toEpochMs } from "../../model/timestamp.ts";
import type { ObjectRow } from "./rows.ts";

/** Returns the row of an object, with names and sizes but never with values. */
export function objectRow(view: ObjectView): ObjectRow {
  const { namespace, name, usedBy, updatedAt } = view;
  return { namespace, name, ...contentOf(view), usedBy: usedBy.length, updatedMs: toEpochMs(updatedAt) ?? 0 };
}

function contentOf({ spec }: ObjectView): Pick<ObjectRow, "kind" | "about" | "sizes"> {
  switch (spec?.$case) {
    case "secret":
      return { kind: "secret", about: "", sizes: spec.value.sizes };
    case "configMap":
      return { kind: "config_map", about: "", sizes: spec.value.sizes };
    case "registryCredential":
      return { kind: "registry_credential", about: `${spec.value.username}@${spec.value.server}` };
    case "claim": {
      const { capacity, node } = spec.value;
      return { kind: "claim", about: `${capacity || "no limit"} on ${node || "no node yet"}` };
    }
    case "priorityClass":
      return { kind: "priority_class", about: `${spec.value.value} ${spec.value.description}` };
    case undefined:
      return { kind: "", about: "" };
    default:
      return spec satisfies never;
  }
}
