import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadProgram } from "../src/commands/program.ts";
import * as commands from "./command-reference.ts";
import * as kubernetes from "./kubernetes-reference.ts";

function write(page: string, begin: string, end: string, rendered: string): void {
  const path = join(import.meta.dirname, "../../docs/reference", page);
  const text = readFileSync(path, "utf8");
  writeFileSync(
    path,
    text.slice(0, text.indexOf(begin)) + rendered + text.slice(text.indexOf(end) + end.length),
  );
}

write("cli.md", commands.BEGIN, commands.END, commands.renderReference(await loadProgram()));
write("kubernetes.md", kubernetes.BEGIN, kubernetes.END, kubernetes.renderKubernetes());
