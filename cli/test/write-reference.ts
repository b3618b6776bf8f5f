import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadProgram } from "../src/commands/program.ts";
import { BEGIN, END, renderReference } from "./command-reference.ts";

const path = join(import.meta.dirname, "../../docs/reference/cli.md");
const text = readFileSync(path, "utf8");
writeFileSync(
  path,
  text.slice(0, text.indexOf(BEGIN)) +
    renderReference(await loadProgram()) +
    text.slice(text.indexOf(END) + END.length),
);
