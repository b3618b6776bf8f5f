import {
  type Namespace,
  type OperatorServiceService,
  PodPolicy,
} from "@forage/proto/forage/operator/v1/operator";
import { NamespaceRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import { encodeRecord } from "../../model/codec.ts";
import { namespaceKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { callerName } from "../../rpc/caller.ts";
import type { Handlers } from "../../rpc/serve.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import type { NamespaceRules } from "./namespace-rules.ts";
import { DEFAULT_LIMITS, limitText } from "./quota.ts";
import { listViolations } from "./stored-violations.ts";
import { QUOTA_RESOURCES } from "./usage.ts";
import { validatePolicy, validateQuota } from "./validate.ts";

export interface NamespaceOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly namespaceRules: NamespaceRules;
}

export type NamespaceReadOptions = Pick<NamespaceOptions, "state" | "namespaceRules">;

/** The limit of attempts when other requests change the same namespace at the same time. */
const MAX_TRIES = 8;
/** The limit of namespaces with a policy or quota, because all these records are in memory. */
const MAX_NAMESPACES = 10_000;

/** Returns the handlers of the calls about namespaces. */
export function namespaceHandlers(
  options: NamespaceOptions,
): Pick<
  Handlers<typeof OperatorServiceService>,
  "listNamespaces" | "setNamespacePolicy" | "setNamespaceQuota"
> {
  return {
    ...namespaceReadHandlers(options),
    setNamespacePolicy: async (request, { caller }) => {
      validatePolicy(request);
      const { namespace, policy = PodPolicy.fromPartial({}), remove } = request;
      return {
        namespace: await change(namespace, callerName(caller), options, (record) => {
          const others = record.policies.filter(({ role }) => role !== policy.role);
          return { ...record, policies: remove ? others : [...others, policy] };
        }),
      };
    },
    setNamespaceQuota: async (request, { caller }) => {
      validateQuota(request);
      const { namespace, limits, reset } = request;
      return {
        namespace: await change(namespace, callerName(caller), options, (record) => {
          const quota = { ...(reset ? {} : record.quota), ...limits };
          const kept = Object.entries(quota).filter(([, text]) => text !== "");
          return { ...record, quota: Object.fromEntries(kept) };
        }),
      };
    },
  };
}

/** Returns the handlers of the calls that only read. */
export function namespaceReadHandlers(
  options: NamespaceReadOptions,
): Pick<Handlers<typeof OperatorServiceService>, "listNamespaces"> {
  return {
    listNamespaces: async ({ namespace }) => {
      if (namespace !== "") return { namespaces: [withViolations(namespace, options)] };
      return { namespaces: namesOf(options.state).map((name) => viewOf(name, options)) };
    },
  };
}

async function change(
  namespace: string,
  by: string,
  options: NamespaceOptions,
  edit: (record: NamespaceRecord) => NamespaceRecord,
): Promise<Namespace> {
  const { store, state, clock } = options;
  const key = namespaceKey(namespace);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = state.namespaces.get(key);
    if (stored === undefined && state.namespaces.size >= MAX_NAMESPACES)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `${MAX_NAMESPACES} namespaces have policies or quotas, which is the limit: remove unused ones`,
      );
    const record = {
      ...edit(stored?.record ?? NamespaceRecord.fromPartial({ name: namespace })),
      updatedAt: toTimestamp(clock.nowMs()),
      updatedBy: by,
    };
    const isEmpty = record.policies.length === 0 && Object.keys(record.quota).length === 0;
    const result = await store.txn(
      [{ type: "mod-revision", key, revision: stored?.revision ?? 0 }],
      [
        isEmpty
          ? { type: "delete", key }
          : { type: "put", key, value: encodeRecord(NamespaceRecord, record) },
      ],
    );
    await state.reached(result.revision);
    if (result.succeeded) return withViolations(namespace, options);
  }
  throw new CoordinatorError(
    "CONFLICT",
    `other requests changed namespace "${namespace}" repeatedly; try again`,
  );
}

function withViolations(name: string, options: NamespaceReadOptions): Namespace {
  const { state } = options;
  const policies = state.namespaces.get(namespaceKey(name))?.record.policies ?? [];
  const records = state.resources(name).map(({ record }) => record);
  const { violations, violating } = listViolations(records, policies);
  return { ...viewOf(name, options), violations, violatingResources: violating };
}

function viewOf(name: string, { state, namespaceRules }: NamespaceReadOptions): Namespace {
  const record = state.namespaces.get(namespaceKey(name))?.record;
  const own = record?.quota ?? {};
  const used = namespaceRules.usage.ofNamespace(name);
  const limits = Object.entries({ ...DEFAULT_LIMITS, ...own });
  return {
    name,
    policies: [...(record?.policies ?? [])].sort((a, b) => (a.role < b.role ? -1 : 1)),
    quota: Object.fromEntries(limits.flatMap(([key, text]) => (text === undefined ? [] : [[key, text]]))),
    used: Object.fromEntries(
      QUOTA_RESOURCES.map((resource) => [resource, limitText(resource, used[resource])]),
    ),
    defaultQuota: Object.keys(own).length === 0,
    violations: [],
    violatingResources: 0,
  };
}

/** Returns the names of all namespaces. A namespace exists while it contains something, or has a policy or quota. */
function namesOf(state: ClusterView): string[] {
  const names = new Set(state.namespaces.all().map(({ record }) => record.name));
  for (const { record } of state.resources()) names.add(record.namespace);
  for (const { name } of state.objects.list()) if (name.namespace !== "") names.add(name.namespace);
  return [...names].sort();
}
