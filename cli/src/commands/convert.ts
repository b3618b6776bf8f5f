import { defineCommand } from "../command/definition.ts";
import { contextOf } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import type { Bundle } from "../manifest/bundles.ts";
import { writeResource } from "../manifest/write-manifest.ts";
import { renderDocument } from "../output/document.ts";
import { LOSSY_FLAG, MANIFEST_FLAG, readManifests } from "./read-manifests.ts";

export const convert = defineCommand({
  name: "convert",
  summary: "Print Compose files as manifests",
  details: `apply, plan, diff and validate read Compose files as they are. A field that can't be carried over is an error with its line.
Variables such as $NAME come from this shell. Named volumes become claims, and secrets and configs are objects; create them before the apply.`,
  flags: { file: MANIFEST_FLAG, lossy: LOSSY_FLAG },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const bundles = await readManifests(context, invocation.flags);
    const documents = bundles.map(documentOf);
    const { stdout } = context.world;
    if (context.format === "json")
      stdout.write(renderDocument("json", documents.length === 1 ? documents[0] : documents));
    else stdout.write(documents.map((each) => renderDocument("yaml", each)).join("---\n"));
    return EXIT.ok;
  },
});

function documentOf({ request: { namespace, labels, applyId, resources } }: Bundle): object {
  return {
    namespace,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(applyId !== "" && { apply_id: applyId }),
    resources: resources.map(writeResource),
  };
}
