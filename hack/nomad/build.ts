import { buildNomad } from "../lib/nomad.ts";

// Prints the path of the program. The first time takes about ten minutes of CPU.
console.log(await buildNomad());
