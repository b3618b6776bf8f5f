import { defineCommand } from "../command/definition.ts";
import { contextOf } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Bundle } from "../manifest/bundles.ts";
import { writeResource } from "../manifest/write-manifest.ts";
import { renderDocument } from "../output/document.ts";
import { plainText } from "../output/plain-text.ts";
import { titleOf } from "./put-objects.ts";
import { LOSSY_FLAG, MANIFEST_FLAG, readManifests } from "./read-manifests.ts";

export const convert = defineCommand({
  name: "convert",
  summary: "Print Kubernetes manifests and Compose files as manifests",
  details: `apply, plan, diff and validate read these files as they are. A field that can't be carried over is an error with its line.
Variables such as $NAME of a Compose file come from this shell. A manifest holds no objects (secrets, config maps, claims, registry credentials,
priority classes): those of a Kubernetes manifest are named on standard error, and create those of a Compose file before the apply.`,
  flags: { file: MANIFEST_FLAG, lossy: LOSSY_FLAG },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { bundles, objects } = await readManifests(context, invocation.flags);
    if (bundles.length === 0) throw new CliError("MANIFEST", "the files hold no resources, only objects");
    const documents = bundles.map(documentOf);
    const { stdout, stderr } = context.world;
    for (const { object } of objects)
      stderr.write(
        `not in the manifest: ${plainText(titleOf(object))}; apply puts it from the original file\n`,
      );
    if (context.format === "json")
      stdout.write(renderDocument("json", documents.length === 1 ? documents[0] : documents));
    else stdout.write(documents.map((each) => renderDocument("yaml", each)).join("---\n"));
    return EXIT.ok;
  },
});

/** Returns a bundle as a document of a manifest. */
export function documentOf({ request: { namespace, labels, applyId, resources } }: Bundle): object {
  return {
    namespace,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(applyId !== "" && { apply_id: applyId }),
    resources: resources.map(writeResource),
  };
}
