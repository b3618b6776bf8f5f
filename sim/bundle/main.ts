import { parseFlags } from "../history-flags.ts";
import { playHistories } from "../play-histories.ts";

process.exitCode = await playHistories(parseFlags(process.argv.slice(2)));
