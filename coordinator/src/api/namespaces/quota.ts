import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { formatAmount, parseAmount } from "@forage/scheduler";
import type { BundleItem } from "../forage/bundle.ts";
import type { Field } from "../validate/field.ts";
import { containersOf, podOf } from "./pod-parts.ts";
import {
  type Amounts,
  costOf,
  NOTHING,
  plus,
  QUOTA_RESOURCES,
  type QuotaResource,
  type Usage,
} from "./usage.ts";

/** Limits by resource, as the operator writes them: `{ pods: "20", cpu: "4", memory: "8Gi" }`. */
export type Limits = Readonly<Partial<Record<string, string>>>;

/**
 * The quota of a namespace without one of its own: enough for a team; operators may allow more. Applies only to tokens that
 * are limited to namespaces.
 */
export const DEFAULT_LIMITS: Limits = { pods: "1000", objects: "1000", bytes: "64Mi" };

/**
 * Over all namespaces and for every caller: four times the 50,000 pods that a coordinator is measured with, and what fits into its
 * memory beside them.
 */
const TOTAL_LIMITS: Limits = { pods: "200000", objects: "100000", bytes: "1Gi" };

/** Parses a limit's text; `bytes` is written as memory. */
export function limitAmount(resource: QuotaResource, text: string): number {
  return parseAmount(resource === "bytes" ? "memory" : resource, text);
}

export function limitText(resource: QuotaResource, amount: number): string {
  return formatAmount(resource === "bytes" ? "memory" : resource, amount);
}

export interface QuotaCheck {
  readonly namespace: string;
  readonly limits: Limits;
  readonly usage: Usage;
}

/** Reports the fields by which the apply exceeds a limit. Removals make room for additions. */
export function checkApplyQuota(items: readonly BundleItem[], resources: Field, check: QuotaCheck): void {
  const { namespace, limits, usage } = check;
  const changes = items.map((item) => changeOf(item, usage));
  const where = (index: number): Field => resources.item(index);
  demandRequests(items, where, check);
  report(items, changes, usage.ofNamespace(namespace), limits, where, `namespace "${namespace}"`);
  report(items, changes, usage.total(), TOTAL_LIMITS, where, "the cluster");
}

function changeOf({ action, resource, existing }: BundleItem, usage: Usage): Amounts {
  if (action === "unchanged") return NOTHING;
  const before = existing === undefined ? NOTHING : usage.of(existing.record);
  const after = action === "remove" || resource === undefined ? NOTHING : costOf(resource);
  return plus(after, before, -1);
}

/** A quota of cpu or memory can't count containers that don't say what they need. */
function demandRequests(
  items: readonly BundleItem[],
  where: (index: number) => Field,
  { namespace, limits }: QuotaCheck,
): void {
  for (const [index, { action, resource }] of items.entries()) {
    if (resource === undefined || (action !== "create" && action !== "update")) continue;
    const placed = podOf(resource, where(index));
    for (const { container, field } of placed === undefined ? [] : containersOf(placed))
      for (const name of ["cpu", "memory"] as const) {
        const { requests, limits: own } = container.resources ?? {};
        if (limits[name] === undefined || requests?.[name] || own?.[name]) continue;
        field
          .at("resources")
          .at("requests")
          .at(name)
          .invalid(`must be set: namespace "${namespace}" has a quota for ${name}`);
      }
  }
}

function report(
  items: readonly BundleItem[],
  changes: readonly Amounts[],
  used: Amounts,
  limits: Limits,
  where: (index: number) => Field,
  whose: string,
): void {
  const total = changes.reduce((sum, change) => plus(sum, change), NOTHING);
  for (const name of QUOTA_RESOURCES) {
    const text = limits[name];
    if (text === undefined || total[name] <= 0) continue;
    const limit = limitAmount(name, text);
    const wanted = used[name] + total[name];
    if (wanted <= limit) continue;
    const index = largest(changes, name);
    const resource = items[index]?.resource;
    const field = resource === undefined ? where(index) : fieldOf(resource, name, where(index));
    field.invalid(exceeded(name, whose, used[name], wanted, limit));
  }
}

/** Returns the index of the change that adds the most of the resource. */
function largest(changes: readonly Amounts[], name: QuotaResource): number {
  let found = 0;
  for (const [index, change] of changes.entries())
    if (change[name] > (changes[found]?.[name] ?? 0)) found = index;
  return found;
}

function fieldOf(resource: ForageResource, name: QuotaResource, field: Field): Field {
  const placed = podOf(resource, field);
  if (placed === undefined || name === "objects" || name === "bytes") return field;
  if (name !== "pods") return placed.field.at("container").at("resources").at("requests").at(name);
  if (resource.spec?.$case !== "containerService") return placed.field.at("job_config").at("parallelism");
  const scaling = resource.spec.value.scaling;
  const autoscaled = (scaling?.autoscaling?.maxReplicas ?? 0) > (scaling?.replicas ?? 1);
  const at = placed.field.at("scaling");
  return autoscaled ? at.at("autoscaling").at("max_replicas") : at.at("replicas");
}

export function exceeded(
  name: QuotaResource,
  whose: string,
  used: number,
  wanted: number,
  limit: number,
): string {
  const text = (amount: number): string => limitText(name, amount);
  return `exceeds the quota of ${whose} for ${name}: ${text(used)} in use, ${text(wanted)} with this request, at most ${text(limit)}: ask for less, remove what isn't used, or have an admin raise it (\`forage namespace quota set NAMESPACE --${name} LIMIT\`)`;
}
