import { loadCompiled, requireBuiltin } from "./load-compiled.ts";

// Stands beside the program it starts, under its name.
loadCompiled(import.meta.filename.replace(/\.mjs$/, "")).run(requireBuiltin);
