import type { State } from "../../state/state.ts";
import { findService } from "../endpoints.ts";
import type { ServiceRoute } from "./routes.ts";

/** A service's routes: those that target it, by name, and then its inline one. */
export function routesOf(state: State, namespace: string, service: string): ServiceRoute[] {
  const routes: ServiceRoute[] = [];
  for (const { record } of state.resources(namespace)) {
    const spec = record.resource?.spec;
    if (record.deleting || spec?.$case !== "route" || spec.value.targetService !== service) continue;
    const { priority, rules } = spec.value;
    routes.push({ name: record.name, ownResource: true, priority, rules });
  }
  routes.sort((a, b) => (a.name < b.name ? -1 : 1));
  const inline = findService(state, namespace, service)?.spec.inlineRoute;
  if (inline !== undefined)
    routes.push({ name: service, ownResource: false, priority: 0, rules: inline.rules });
  return routes;
}
