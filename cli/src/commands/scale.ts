import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { parseReplicas } from "../launch/parse.ts";
import { findResource } from "./find.ts";
import { followRollouts } from "./follow-rollouts.ts";
import { parseResource } from "./reference.ts";
import { sendChanged } from "./send-changed.ts";

export const scale = defineCommand({
  name: "scale",
  summary: "Change how many replicas a container service has",
  details: `The rest of the service stays as it is deployed. The next apply of its manifest sets the manifest's number again.
It is followed until it has ended; exit codes are those of apply.`,
  operands: [
    { name: "KIND/NAME", required: true, help: "which container service" },
    { name: "REPLICAS", required: true, help: "how many; 0 stops all its pods" },
  ],
  flags: { detach: { type: "switch", help: "don't follow the rollout, print its id" } },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [target = "", text = ""] = invocation.operands;
    const reference = parseResource(target);
    const replicas = parseReplicas("REPLICAS", text);
    return withCoordinator(context, async (coordinator) => {
      const found = await findResource(coordinator, context.settings.namespace, reference);
      const changed = { resource: scaled(found, replicas), labels: found.labels };
      const rolloutId = await sendChanged(context, coordinator, found, changed);
      if (!invocation.flags.detach)
        return followRollouts(context, coordinator, [rolloutId], { single: true });
      printOne(
        context,
        () => ({ rolloutId, namespace: found.namespace }),
        () => `${rolloutId}\n`,
      );
      return EXIT.ok;
    });
  },
});

/**
 * Returns the resource with another number of replicas. Throws if the number can't be set, for
 * example because of an autoscaler.
 */
function scaled({ kind, name, namespace, spec }: Resource, replicas: number): NonNullable<Resource["spec"]> {
  const chosen = spec?.spec;
  if (spec === undefined || chosen?.$case !== "containerService")
    throw new CliError("USAGE", `${kind}/${name} has no replicas: only container services have`);
  if (chosen.value.scaling?.autoscaling !== undefined)
    throw new CliError(
      "REFUSED",
      `${kind}/${name} is scaled by its autoscaling policy: change the policy with forage edit container_service/${name} -n ${namespace}`,
    );
  const scaling = { replicas, autoscaling: undefined };
  return { ...spec, spec: { ...chosen, value: { ...chosen.value, scaling } } };
}
