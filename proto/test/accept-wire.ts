// Records the wire format of the .proto sources. Removals and renumberings require --breaking. The frozen contracts
// can't be changed at all.
import { buildRegistry } from "./descriptor.ts";
import { describeWire } from "./wire.ts";
import { compareWire, objections } from "./wire-change.ts";
import { readPinnedWire, writePinnedWire } from "./wire-file.ts";

const current = describeWire(await buildRegistry());
const change = compareWire(await readPinnedWire(), current);
for (const line of [
  ...change.removed.map((line) => `- ${line}`),
  ...change.added.map((line) => `+ ${line}`),
]) {
  console.log(line);
}
const refusals = objections(change, { breaking: process.argv.includes("--breaking") });
if (refusals.length > 0) {
  console.error([...refusals, "Nothing was written."].join("\n"));
  process.exitCode = 1;
} else {
  await writePinnedWire(current);
}
