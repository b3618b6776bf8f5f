import { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { ApplyResourcesRequest, ForageResource } from "@forage/proto/forest/v1/forage";
import { type Route, routeOf } from "../../gateway/route.ts";
import type { Field } from "../validate/field.ts";

/**
 * Reports hostnames of the request that conflict with routes of other namespaces on the same gateway. The namespace with
 * the oldest route owns its hostnames, and those that its wildcards match. A resource keeps the hostnames that it has
 * already.
 */
export function checkHostnames(
  { namespace, resources }: ApplyResourcesRequest,
  stored: readonly ResourceRecord[],
  field: Field,
): void {
  const asked = resources.map((resource) => routeIn(namespace, resource));
  if (asked.every((route) => route === undefined)) return;
  const routes = stored.flatMap((record) => routeOf(record) ?? []);
  const others = routes.filter((route) => route.namespace !== namespace);
  for (const [index, route] of asked.entries()) {
    if (route === undefined) continue;
    const before = routes.find(
      (it) => it.namespace === namespace && it.kind === route.kind && it.name === route.name,
    );
    for (const [position, hostname] of route.hostnames.entries()) {
      if (before?.gateway === route.gateway && before.hostnames.includes(hostname)) continue;
      const owner = others.find(
        (it) => it.gateway === route.gateway && it.hostnames.some((other) => captures(hostname, other)),
      );
      if (owner === undefined) continue;
      const spec = field.item(index).at(route.kind);
      const at = route.kind === "route" ? spec : spec.at("inline_route");
      at.at("hostnames")
        .item(position)
        .invalid(
          `${JSON.stringify(hostname)} belongs to namespace "${owner.namespace}", which has a route for it on gateway "${route.gateway}": use another hostname, or have the route applied with a token for all namespaces`,
        );
    }
  }
}

/** Reports whether a route for the hostname would receive requests that match the other hostname. */
function captures(hostname: string, other: string): boolean {
  if (hostname === other) return true;
  return other.startsWith("*.") && hostname.endsWith(other.slice(1));
}

function routeIn(namespace: string, resource: ForageResource): Route | undefined {
  return routeOf(ResourceRecord.fromPartial({ namespace, name: resource.name, resource }));
}
