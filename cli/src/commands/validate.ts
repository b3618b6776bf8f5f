import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { readBundles } from "../manifest/bundles.ts";
import { readSources } from "../manifest/read-sources.ts";
import { MANIFEST_FLAG } from "./apply.ts";

export const validate = defineCommand({
  name: "validate",
  summary: "Check manifests without sending anything",
  details: `Finds unknown fields, wrong types and contradictions. The coordinator checks on apply what depends on the state of the cluster.`,
  flags: { file: MANIFEST_FLAG },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const sources = await readSources(invocation.flags.file, context.world.stdin);
    const bundles = readBundles(sources, context.settings);
    const count = bundles.reduce((sum, { resources }) => sum + resources.length, 0);
    printOne(
      context,
      () =>
        bundles.map(({ request: { namespace, labels, resources } }) => ({
          namespace,
          labels,
          resources: resources.map(({ name, spec }) => ({ kind: spec?.$case, name })),
        })),
      () =>
        `valid: ${count === 1 ? "1 resource" : `${count} resources`} in ${bundles.length === 1 ? "1 bundle" : `${bundles.length} bundles`}\n`,
    );
    return EXIT.ok;
  },
});
