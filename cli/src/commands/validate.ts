import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { LOSSY_FLAG, MANIFEST_FLAG, readManifests } from "./read-manifests.ts";

export const validate = defineCommand({
  name: "validate",
  summary: "Check manifests without sending anything",
  details: `Finds unknown fields, wrong types and contradictions. The coordinator checks on apply what depends on the state of the cluster.`,
  flags: { file: MANIFEST_FLAG, lossy: LOSSY_FLAG },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { bundles, objects } = await readManifests(context, invocation.flags);
    const count = bundles.reduce((sum, { resources }) => sum + resources.length, 0);
    const more =
      objects.length === 0 ? "" : objects.length === 1 ? ", 1 object" : `, ${objects.length} objects`;
    printOne(
      context,
      () => [
        ...bundles.map(({ request: { namespace, labels, resources } }) => ({
          namespace,
          labels,
          resources: resources.map(({ name, spec }) => ({ kind: spec?.$case, name })),
        })),
        ...objects.map(({ object: { namespace, name, spec } }) => ({
          namespace,
          object: { kind: spec?.$case, name },
        })),
      ],
      () =>
        `valid: ${count === 1 ? "1 resource" : `${count} resources`} in ${bundles.length === 1 ? "1 bundle" : `${bundles.length} bundles`}${more}\n`,
    );
    return EXIT.ok;
  },
});
