import { renameSync, writeFileSync } from "node:fs";
import { loadCompiled, requireBuiltin } from "./load-compiled.ts";

// Runs `BASE [ARGUMENT…]`. At its end, writes the code of all functions that were compiled for it.
const [base = "", ...rest] = process.argv.slice(2);
process.argv.splice(1, process.argv.length, `${base}.mjs`, ...rest);
const { script, id, run } = loadCompiled(base);
process.on("exit", () => {
  const partial = `${base}.cache.${process.pid}`;
  writeFileSync(partial, Buffer.concat([script.createCachedData(), Buffer.from(id, "latin1")]));
  renameSync(partial, `${base}.cache`);
});
run(requireBuiltin);
