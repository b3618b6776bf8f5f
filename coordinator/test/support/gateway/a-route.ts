import { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { ForageResource, RouteSpec } from "@forage/proto/forest/v1/forage";
import { type Route, routeOf } from "../../../src/gateway/route.ts";
import { resourceKey } from "../../../src/model/keys.ts";
import { toTimestamp } from "../../../src/model/timestamp.ts";
import type { ResourceEntry } from "../../../src/state/entries.ts";

export interface RouteFields {
  readonly name?: string;
  readonly namespace?: string;
  readonly createdMs?: number;
  readonly spec?: Parameters<typeof RouteSpec.fromPartial>[0];
}

/** Returns a stored route resource. Without a spec it sends all requests to the service web. */
export function aRouteRecord(fields: RouteFields = {}): ResourceRecord {
  const { name = "front", namespace = "shop", createdMs = 1_000, spec = {} } = fields;
  const value = { targetService: "web", ...spec };
  return recordOf("route", namespace, name, createdMs, { $case: "route", value });
}

/** Returns a stored service with an inline route. */
export function aServiceRecord({ name = "web", namespace = "shop", createdMs = 1_000, spec = {} } = {}) {
  const value = { target: "web", ports: [{ name: "http", port: 80, targetPort: 8080 }], ...spec };
  return recordOf("service", namespace, name, createdMs, { $case: "service", value });
}

export function aRoute(fields: RouteFields = {}): Route {
  return some(routeOf(aRouteRecord(fields)));
}

/** Returns the entry that the view would contain for the record. */
export function entryOf(record: ResourceRecord): ResourceEntry {
  const { namespace, kind, name } = record;
  const key = resourceKey(namespace, kind, name);
  return { key, revision: 1, record, workload: undefined, applied: undefined };
}

export function some<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is none");
  return value;
}

function recordOf(kind: string, namespace: string, name: string, createdMs: number, spec: object) {
  return ResourceRecord.fromPartial({
    namespace,
    kind,
    name,
    resource: { name, spec } as ForageResource,
    createdAt: toTimestamp(createdMs),
  });
}
