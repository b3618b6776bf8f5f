import type { ServicePort } from "@forage/proto/forest/v1/forage";
import { findService } from "../endpoints/endpoints.ts";
import type { ObjectFaults } from "../faults/object-faults.ts";
import type { BuiltInServices } from "../model/built-in-service.ts";
import { objectKey } from "../model/keys.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change, ResourceEntry } from "../state/entries.ts";
import { type Route, routeKey, routeOf } from "./route.ts";

/** The existing routes, and the objects on which they depend. */
export class RouteIndex {
  readonly #state: ClusterView;
  readonly #faults: ObjectFaults;
  readonly #builtIn: BuiltInServices | undefined;
  readonly #routes = new Map<string, Route>();
  #secrets: ReadonlySet<string> | undefined;

  constructor(state: ClusterView, faults: ObjectFaults, builtIn?: BuiltInServices) {
    this.#builtIn = builtIn;
    this.#state = state;
    this.#faults = faults;
    for (const entry of state.resources()) this.#note(entry);
  }

  /** Applies a change of the cluster view. Reports whether gateways must be evaluated again. */
  follow(change: Change): boolean {
    if (change.type === "object") {
      const name = (change.after ?? change.before)?.name;
      return name !== undefined && this.secrets.has(objectKey(name));
    }
    if (change.type !== "resource") return false;
    const { before, after } = change;
    const kind = (after ?? before)?.record.kind;
    if (kind !== "route" && kind !== "service") return false;
    if (before !== undefined) this.#routes.delete(keyOf(before));
    if (after !== undefined) this.#note(after);
    this.#secrets = undefined;
    return true;
  }

  byGateway(): Map<string, Route[]> {
    const found = new Map<string, Route[]>();
    for (const route of this.#routes.values()) {
      const routes = found.get(route.gateway);
      if (routes === undefined) found.set(route.gateway, [route]);
      else routes.push(route);
    }
    return found;
  }

  portsOf(namespace: string, service: string): readonly ServicePort[] | undefined {
    const found = findService(this.#state, namespace, service)?.spec.ports;
    return found ?? this.#builtIn?.portsOf(namespace, service);
  }

  /** The keys of the secrets to which routes refer for certificates. */
  get secrets(): ReadonlySet<string> {
    this.#secrets ??= new Set([...this.#routes.values()].flatMap(secretKeyOf));
    return this.#secrets;
  }

  #note(entry: ResourceEntry): void {
    const { kind, namespace, name } = entry.record;
    const route = this.#faults.attempt({ kind, namespace, name }, () => routeOf(entry.record));
    if (route !== undefined) this.#routes.set(routeKey(route), route);
  }
}

function keyOf({ record: { kind, namespace, name } }: ResourceEntry): string {
  return `${kind}/${namespace}/${name}`;
}

function secretKeyOf({ namespace, tls }: Route): string[] {
  if (tls?.mode !== "Terminate" || tls.secret === "") return [];
  return [objectKey({ namespace, kind: "secret", name: tls.secret })];
}
