import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { ObjectName } from "./object-name.ts";

/** Returns the secrets with the certificates of a route, or of a service's inline route. */
export function certificateRefsOf({ namespace, resource }: ResourceRecord): readonly ObjectName[] {
  const spec = resource?.spec;
  const route =
    spec?.$case === "route" ? spec.value : spec?.$case === "service" ? spec.value.inlineRoute : undefined;
  const name = route?.tls?.certificateRef ?? "";
  return name === "" ? [] : [{ namespace, kind: "secret", name }];
}
