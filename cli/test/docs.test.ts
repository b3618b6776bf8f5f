import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseLine } from "../src/command/parse.ts";
import { loadProgram } from "../src/commands/program.ts";

const root = join(import.meta.dirname, "../..");
const program = await loadProgram();

/**
 * Returns the lines of shell examples that run the command, without redirections and other syntax
 * of the shell.
 */
function commandsOf(path: string): string[] {
  const text = readFileSync(join(root, path), "utf8");
  const blocks = [...text.matchAll(/^ *```(?:sh|bash|console)\n(.*?)^ *```/gms)].map(
    ([, block = ""]) => block,
  );
  return blocks
    .flatMap((block) => block.replaceAll("\\\n", " ").split("\n"))
    .map((line) => line.replace(/(^|\s)#.*$/, "").trim())
    .flatMap((line) => line.split(/ (?:\||&&|;) /))
    .flatMap(
      (line) => /^(?:\$ )?(?:sudo )?(?:hack\/)?(forage .*?)(?: [<>].*)?$/.exec(line.trim())?.[1] ?? [],
    );
}

/** Returns the commands within sentences that have a flag or an argument. */
function mentionsOf(path: string): string[] {
  const text = readFileSync(join(root, path), "utf8").replaceAll(/^ *```.*?^ *```/gms, "");
  return [...text.matchAll(/`(forage [a-z][^`\n]*)`/g)]
    .map(([, line = ""]) => line)
    .filter((line) => !/[…|]/.test(line));
}

function wordsOf(line: string): string[] {
  return [...line.replaceAll(/ \[(-[^\]]*)\]/g, " $1").matchAll(/'([^']*)'|"([^"]*)"|<\(.*?\)|\S+/g)].map(
    ([word, single, double]) => single ?? double ?? word,
  );
}

describe("commands in the documentation are valid", () => {
  const files = globSync("{README.md,docs/**/*.md}", { cwd: root }).sort();
  const all = files.flatMap((path) => [
    ...commandsOf(path).map((line) => ({ path, line, isExample: true })),
    ...mentionsOf(path).map((line) => ({ path, line, isExample: false })),
  ]);

  test("finds commands in the documentation", () =>
    assert.ok(all.filter(({ isExample }) => isExample).length > 5 && all.length > 60, `${all.length}`));

  for (const { path, line, isExample } of all)
    test(`understands ${path}: ${line}`, () => {
      try {
        parseLine(program, wordsOf(line).slice(1));
      } catch (error) {
        // A sentence may mention a command without its required arguments.
        if (isExample || !/ is missing: | needs a value: /.test(String(error))) throw error;
      }
    });
});
