#!/usr/bin/env node
import { join } from "node:path";
import { findCycles, findFolderCycles } from "./imports/find-cycles.ts";
import { findViolations } from "./imports/import-rules.ts";
import { readSources } from "./imports/read-sources.ts";

const root = join(import.meta.dirname, "..");
const sources = readSources(root);
const complaints = [
  ...findViolations(sources),
  ...findCycles(sources.modules).map((cycle) => `import cycle:\n    ${cycle.join("\n    → ")}`),
  ...findFolderCycles("coordinator/src", sources.modules).map(
    (cycle) => `folders of the coordinator import one another: ${cycle.join(" → ")}`,
  ),
];
for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) {
  console.error(
    `${complaints.length} of the imports point the wrong way; hack/imports/import-rules.ts says what is allowed`,
  );
  process.exitCode = 1;
}
