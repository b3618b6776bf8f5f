import type { ResourceRecord, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { JOB_ANNOTATIONS } from "./job-annotations.ts";
import type { Labels } from "./labels.ts";

/** A service whose pods must be ready, or a job that must be complete, before a workload begins. */
export interface Dependency {
  readonly kind: "container_service" | "job";
  readonly name: string;
}

/** The limit of dependencies, because all of them are evaluated whenever one changes. */
const MAX_DEPENDENCIES = 32;

/** Parses an annotation such as "web, job/migrate". Returns a message if it is invalid. */
export function parseDependsOn(text: string): readonly Dependency[] | string {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length > MAX_DEPENDENCIES) return `must name at most ${MAX_DEPENDENCIES}, names ${parts.length}`;
  const found: Dependency[] = [];
  for (const part of parts) {
    const [kind, name, ...more] = part.includes("/") ? part.split("/") : ["container_service", part];
    const isKnown = kind === "container_service" || kind === "job";
    if (!isKnown || name === undefined || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name) || more.length > 0)
      return `"${part.slice(0, 80).toWellFormed()}" must be the name of a container service, or job/NAME`;
    if (found.some((one) => one.kind === kind && one.name === name)) return `names ${part} twice`;
    found.push({ kind, name });
  }
  return found;
}

/** Returns the resource's dependencies. Empty without the annotation, or with an invalid one that an earlier version stored. */
export function dependenciesOf({ resource }: Pick<ResourceRecord, "resource">): readonly Dependency[] {
  const text = annotationsOf(resource)?.[JOB_ANNOTATIONS.dependsOn];
  if (text === undefined) return [];
  const found = parseDependsOn(text);
  return typeof found === "string" ? [] : found;
}

/**
 * Reports whether the resource has dependencies that were never all met since its last change, so that it creates no pods.
 */
export function hasDependencies(record: ResourceRecord, status: WorkloadStatusRecord | undefined): boolean {
  return dependenciesOf(record).length > 0 && status?.dependenciesMet !== record.generation;
}

export function annotationsOf(resource: ResourceRecord["resource"]): Labels | undefined {
  const spec = resource?.spec;
  switch (spec?.$case) {
    case "containerService":
    case "job":
    case "cronJob":
      return spec.value.podConfig?.annotations;
    default:
      return undefined;
  }
}
