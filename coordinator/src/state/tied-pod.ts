import type { NodeSelectorTerm } from "@forage/proto/forest/v1/forage";
import type { PodEntry } from "./entries.ts";

/**
 * Returns the reason why the pod can run on no other node than its own. Undefined: its data and its own selectors allow
 * others. Pure.
 */
export function tieOf({ record, refs }: PodEntry): string | undefined {
  const claim = refs.find(({ kind }) => kind === "claim");
  if (claim !== undefined) return `its claim "${claim.name}" is on ${record.node}`;
  const { nodeSelector, affinity } = record.template?.podConfig ?? {};
  const selected = HOSTNAME_LABELS.some((label) => nodeSelector?.[label] === record.node);
  const terms = affinity?.nodeAffinity?.required?.terms ?? [];
  const demanded = terms.length > 0 && terms.every((term) => namesOnly(term, record.node));
  return selected || demanded ? `it selects ${record.node} by name` : undefined;
}

const HOSTNAME_LABELS = ["kubernetes.io/hostname", "hostname"];

function namesOnly({ matchExpressions, matchFields }: NodeSelectorTerm, node: string): boolean {
  return [
    ...matchExpressions.filter(({ key }) => HOSTNAME_LABELS.includes(key)),
    ...matchFields.filter(({ key }) => key === "metadata.name"),
  ].some(({ operator, values }) => operator === "In" && values.length === 1 && values[0] === node);
}
