import manifest from "../../package.json" with { type: "json" };
import { defineCommand } from "../command/definition.ts";
import { EXIT } from "../exit-code.ts";

export const versionCommand = defineCommand({
  name: "version",
  summary: "Print the version of this command",
  // This command needs no configuration, so an invalid one does not matter.
  run: async ({ flags, world }) => {
    const { version } = manifest;
    const { output } = flags;
    const isDocument = output === "json" || output === "yaml";
    if (isDocument) {
      const { renderDocument } = await import("../output/document.ts");
      world.stdout.write(renderDocument(output, { version }));
    } else world.stdout.write(`forage ${version}\n`);
    return EXIT.ok;
  },
});
