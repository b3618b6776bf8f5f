import { labelKeyProblem } from "../syntax/names.ts";

/** The fields of its own pod to which a container can refer. The names are Kubernetes'. */
const FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.podIP",
];
const AMOUNTS = ["cpu", "memory", "ephemeral-storage"];

export function fieldRefProblem(text: string): string | undefined {
  if (FIELDS.includes(text)) return undefined;
  const [, map, key] = /^metadata\.(labels|annotations)\['([^']*)'\]$/.exec(text) ?? [];
  if (map === undefined || key === undefined)
    return `must be one of ${FIELDS.join(", ")}, metadata.labels['KEY'], metadata.annotations['KEY']`;
  const problem = labelKeyProblem(map === "annotations" ? key.toLowerCase() : key);
  return problem === undefined ? undefined : `the key ${problem}`;
}

export function resourceFieldRefProblem(text: string): string | undefined {
  const known = ["requests", "limits"].flatMap((list) => AMOUNTS.map((amount) => `${list}.${amount}`));
  return known.includes(text) ? undefined : `must be one of ${known.join(", ")}`;
}
