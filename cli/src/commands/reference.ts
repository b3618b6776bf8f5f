import { CliError } from "../errors.ts";
import { parseKind, RESOURCE_KINDS, type ResourceKind, suggestKind } from "../view/kinds.ts";
import { type ObjectKind, parseObjectKind } from "../view/object-kinds.ts";

export type Reference =
  | { readonly what: "pod"; readonly name: string }
  | { readonly what: "node"; readonly name: string }
  | { readonly what: "resource"; readonly kind: ResourceKind; readonly name: string };

/** Parses `KIND/NAME`, `pod/NAME` or `node/NAME`. Returns undefined for a name without a kind. */
export function parseReference(text: string): Reference | undefined {
  const slash = text.indexOf("/");
  if (slash === -1) return undefined;
  const kindText = text.slice(0, slash);
  const name = text.slice(slash + 1);
  if (name === "" || name.includes("/")) throw new CliError("USAGE", `"${text}" is not KIND/NAME`);
  const plain = kindText.toLowerCase();
  if (plain === "pod" || plain === "pods" || plain === "po") return { what: "pod", name };
  if (plain === "node" || plain === "nodes") return { what: "node", name };
  const kind = parseKind(kindText);
  if (kind !== undefined) return { what: "resource", kind, name };
  const near = suggestKind(kindText, ["pod", "node"]);
  const hint =
    near === undefined ? `; there are pod, node, ${RESOURCE_KINDS.join(", ")}` : ` (did you mean "${near}"?)`;
  throw new CliError("USAGE", `there is no kind "${kindText}"${hint}`);
}

/** Parses a reference to an object such as `secret/NAME`. Returns undefined for other texts. */
export function parseObjectReference(
  text: string,
): { readonly kind: ObjectKind; readonly name: string } | undefined {
  const slash = text.indexOf("/");
  const kind = slash === -1 ? undefined : parseObjectKind(text.slice(0, slash));
  const name = text.slice(slash + 1);
  if (kind === undefined) return undefined;
  if (name === "" || name.includes("/")) throw new CliError("USAGE", `"${text}" is not KIND/NAME`);
  return { kind, name };
}

export function parseResource(text: string): { readonly kind: ResourceKind; readonly name: string } {
  const reference = parseReference(text);
  if (reference?.what === "resource") return reference;
  throw new CliError(
    "USAGE",
    `"${text}" is not KIND/NAME with one of the kinds ${RESOURCE_KINDS.join(", ")}`,
  );
}
