import { loadProgram } from "../commands/program.ts";
import { manPages } from "./man-page.ts";

// Prints all manual pages as one JSON object, by name, for the build of packages.
const pages = manPages(await loadProgram()).map(({ name, text }) => [name, text]);
process.stdout.write(JSON.stringify(Object.fromEntries(pages)));
