import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { readBundles } from "../manifest/bundles.ts";
import { readSources } from "../manifest/read-sources.ts";
import { manifestFlag } from "./apply.ts";

export const validate = defineCommand({
  name: "validate",
  summary: "Check manifests without sending anything",
  details: `Finds what is wrong with their form: unknown fields, wrong types, contradictions. What can only be judged
against the cluster, the coordinator checks on apply.`,
  flags: { file: manifestFlag },
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
