import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import { ApplyResourcesRequest, type ForageResource } from "@forage/proto/forest/v1/forage";
import type { Coordinator } from "../client/coordinator.ts";
import type { Context } from "../context.ts";
import { CliError } from "../errors.ts";
import type { Bundle } from "../manifest/bundles.ts";
import { findResource } from "./find.ts";
import { sendBundle } from "./send-bundle.ts";

export interface ChangedResource {
  readonly resource: ForageResource;
  readonly labels: Readonly<Record<string, string>>;
  /** The bundle from which the resource was read, for the positions in messages. */
  readonly bundle?: Bundle;
}

/**
 * Applies a changed copy of a deployed resource, and returns the rollout's id. Removes nothing.
 * Throws REFUSED if the resource has changed since it was read.
 */
export async function sendChanged(
  context: Context,
  coordinator: Coordinator,
  read: Resource,
  { resource, labels, bundle }: ChangedResource,
): Promise<string> {
  const { namespace, kind, name, generation, owner } = read;
  if (owner !== "")
    throw new CliError("REFUSED", `${kind}/${name} belongs to ${owner}: change that, and it follows`);
  const now = await findResource(coordinator, namespace, { kind, name });
  if (now.generation !== generation)
    throw new CliError("REFUSED", `${kind}/${name} was changed concurrently: try again`);
  const request = ApplyResourcesRequest.create({ namespace, labels, resources: [resource] });
  return sendBundle(context, coordinator, bundle ?? { request, header: undefined, resources: [] }, {
    type: "none",
  });
}
