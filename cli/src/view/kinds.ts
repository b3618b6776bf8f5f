import { suggest } from "../command/suggest.ts";

/** The names of ForageResource.spec. */
export const RESOURCE_KINDS = ["container_service", "service", "route", "cron_job", "job"] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];

const SHORT_FORMS: Readonly<Record<string, ResourceKind>> = {
  cs: "container_service",
  svc: "service",
  cj: "cron_job",
};

/**
 * Parses a kind in any spelling: `container_service`, `container-services`, `ContainerService`,
 * `cs`, …; undefined for other texts.
 */
export function parseKind(text: string): ResourceKind | undefined {
  const plain = text.replaceAll(/[-_]/g, "").toLowerCase();
  if (Object.hasOwn(SHORT_FORMS, plain)) return SHORT_FORMS[plain];
  return RESOURCE_KINDS.find((kind) => {
    const name = kind.replaceAll("_", "");
    return plain === name || plain === `${name}s`;
  });
}

export function suggestKind(text: string, others: readonly string[] = []): string | undefined {
  return suggest(text, [...others, ...RESOURCE_KINDS]);
}
