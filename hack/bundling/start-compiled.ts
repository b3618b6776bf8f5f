import { loadCompiled, requireBuiltin } from "./load-compiled.ts";

// This loader is beside the program that it starts, under the same name.
loadCompiled(import.meta.filename.replace(/\.mjs$/, "")).run(requireBuiltin);
