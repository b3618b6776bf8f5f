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
  surgeOf,
  type Usage,
} from "./usage.ts";

/** Limits by resource, as written by operators, such as `{ pods: "20", cpu: "4", memory: "8Gi" }`. */
export type Limits = Readonly<Partial<Record<string, string>>>;

/**
 * The quota of a namespace without one of its own. It is enough for a team, and applies only to tokens that are limited to
 * namespaces.
 */
export const DEFAULT_LIMITS: Limits = { pods: "1000", objects: "1000", bytes: "64Mi" };

/**
 * The limits over all namespaces, for every caller: four times the 50,000 pods with which a coordinator is tested, and the
 * objects that fit into its memory beside them.
 */
const TOTAL_LIMITS: Limits = { pods: "200000", objects: "100000", bytes: "1Gi" };

/** Parses a limit. The limit of `bytes` has the notation of memory. */
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

/** A resource that is created or changed without an apply. */
export interface SingleChange {
  readonly resource: ForageResource;
  readonly change: Amounts;
}

/** Reports the fields by which the apply exceeds a limit. Amounts of removed resources count as free. */
export function checkApplyQuota(items: readonly BundleItem[], resources: Field, check: QuotaCheck): void {
  const changes = items.map((item) => changeOf(item, check.usage));
  const where = (index: number): Field => resources.item(index);
  demandRequests(items, where, check);
  reportAll(items, changes, where, check);
}

/** Reports the fields by which a change of one resource exceeds a limit. The fields are below `root`. */
export function checkSingleQuota({ resource, change }: SingleChange, root: Field, check: QuotaCheck): void {
  const where = (): Field => root;
  demandRequests([{ resource, action: "update" }], where, check);
  reportAll([{ resource }], [change], where, check);
}

function reportAll(
  items: readonly Pick<BundleItem, "resource">[],
  changes: readonly Amounts[],
  where: (index: number) => Field,
  { namespace, limits, usage }: QuotaCheck,
): void {
  const inNamespace = { used: usage.ofNamespace(namespace), leaving: usage.leaving(namespace) };
  report(items, changes, inNamespace, limits, where, `namespace "${namespace}"`);
  report(items, changes, { used: usage.total(), leaving: NOTHING }, TOTAL_LIMITS, where, "the cluster");
}

function changeOf({ action, resource, existing }: BundleItem, usage: Usage): Amounts {
  if (action === "unchanged") return NOTHING;
  if (existing === undefined) return resource === undefined ? NOTHING : costOf(resource);
  const isRemoved = action === "remove" || resource === undefined;
  const after = isRemoved ? NOTHING : usage.withContent(existing.record, resource);
  return plus(after, usage.of(existing.record), -1);
}

/** Reports containers without a request for cpu or memory if the quota limits it, because they can't be counted. */
function demandRequests(
  items: readonly Pick<BundleItem, "action" | "resource">[],
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
  items: readonly Pick<BundleItem, "resource">[],
  changes: readonly Amounts[],
  { used, leaving }: { readonly used: Amounts; readonly leaving: Amounts },
  limits: Limits,
  where: (index: number) => Field,
  whose: string,
): void {
  const change = changes.reduce((sum, it) => plus(sum, it), NOTHING);
  for (const name of QUOTA_RESOURCES) {
    const text = limits[name];
    // Stopping pods count as used. Otherwise repeated removals and additions would exceed every limit.
    const adds = leaving[name] > 0 && changes.some((it) => it[name] > 0);
    if (text === undefined || (change[name] <= 0 && !adds)) continue;
    const limit = limitAmount(name, text);
    const total = used[name] + change[name];
    if (total <= limit) continue;
    const index = largest(changes, name);
    const resource = items[index]?.resource;
    const field =
      resource === undefined ? where(index) : fieldOf(resource, name, total - limit, where(index));
    field.invalid(exceeded(name, whose, used[name], total, limit));
  }
}

/** Returns the index of the change that adds the most of the resource. */
function largest(changes: readonly Amounts[], name: QuotaResource): number {
  let found = 0;
  for (const [index, change] of changes.entries())
    if (change[name] > (changes[found]?.[name] ?? 0)) found = index;
  return found;
}

function fieldOf(resource: ForageResource, name: QuotaResource, excess: number, field: Field): Field {
  const placed = podOf(resource, field);
  if (placed === undefined || name === "objects" || name === "bytes") return field;
  const { [name]: cost, pods } = costOf(resource);
  // Without the surge, the change would fit.
  if (surgeOf(resource) * (cost / pods) >= excess)
    return placed.field.at("update_strategy").at("rolling_update").at("max_surge");
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
  total: number,
  limit: number,
): string {
  const text = (amount: number): string => limitText(name, amount);
  return `exceeds the quota of ${whose} for ${name}: ${text(used)} in use, ${text(total)} with this request, at most ${text(limit)}: request less, remove unused resources, or have an admin raise it (\`forage namespace quota set NAMESPACE --${name} LIMIT\`)`;
}
