import { parseFlags, USAGE } from "./history-flags.ts";
import { putAnyInPlace } from "./mutants/agent-mutants.ts";

async function main(): Promise<number> {
  const values = parseFlags(process.argv.slice(2));
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (values.mutant !== undefined) putAnyInPlace(values.mutant);
  // The module is loaded only now, after the mutant was put in its place.
  const { playHistories } = await import("./play-histories.ts");
  return playHistories(values);
}

process.exitCode = await main();
