import { parseFlags } from "../history-flags.ts";
import { requireMutant } from "../mutants/agent-mutants.ts";
import { playHistories } from "../play-histories.ts";

const flags = parseFlags(process.argv.slice(2));
if (flags.mutant !== undefined) requireMutant(flags.mutant);
process.exitCode = await playHistories(flags);
