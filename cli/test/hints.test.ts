import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parseLine } from "../src/command/parse.ts";
import { loadProgram } from "../src/commands/program.ts";
import { CliError } from "../src/errors.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { runCommand } from "./run-command.ts";

const root = join(import.meta.dirname, "../..");
const program = await loadProgram();
let fake: FakeCoordinator;

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());

interface Hint {
  readonly place: string;
  /** The line, with expressions of the source replaced by text in angle brackets. */
  readonly line: string;
}

const sources = globSync("{cli,coordinator,agent,identity,hack}/**/*.ts", { cwd: root })
  .filter((path) => !/node_modules|\.test\.ts$|\/(test|e2e|system)\/|\/gen\//.test(path))
  .sort();
/** Texts that begin like a command but are not. */
const PROSE = /^forage (secret key|journal (key|pod)|for [a-z]+:|offers|workspace login$)/;

/** Commands that concern the whole cluster or this machine. */
const WITHOUT_NAMESPACE =
  /^forage (node|coordinator|namespace|token|backup|ca|certificate|notification|context|rebalance|whatif|version|completion|help|why node|rollout status <\w+>)/;

function hintsOf(path: string): Hint[] {
  const text = withoutComments(readFileSync(join(root, path), "utf8")).replaceAll(/\$\{([^{}]*)\}/g, "<$1>");
  const calls = [...text.matchAll(/\bhint\(\s*[\w.]+,\s*(["`])(.*?)\1/gs)].map(
    ([, , words]) => `forage ${words} -n shop`,
  );
  const literals = [...text.matchAll(/(?<![\w/.-])forage ([a-z][^`"\n;,)\\]*)/g)].map(([line]) =>
    line.trim(),
  );
  return [...calls, ...literals.filter((line) => !PROSE.test(line))].map((line) => ({ place: path, line }));
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*.*?\*\//gs, "").replaceAll(/(^|\s)\/\/ .*$/gm, "$1");
}

/** Returns the line with each possible value of its expressions. */
function readings(line: string): string[][] {
  const names = ["container_service/x", "x", "job/x", "node/x", "1", "pods"];
  const text = line
    .replace(/ [<>] .*/, "")
    .replaceAll("KIND/NAME", "container_service/x")
    .replaceAll("<flag>", "--privileged")
    .replaceAll("LIMIT", "3")
    .replaceAll(/<workload\.kind>\/<[\w.]+>/g, "container_service/x");
  return names.map((name) =>
    text
      .replaceAll(/<[^>]*>/g, name)
      .replaceAll(/'([^']*)'/g, "$1")
      .split(" "),
  );
}

const hints = sources.flatMap(hintsOf);

describe("commands that messages and help name", () => {
  test("finds commands in messages and help", () => {
    assert.ok(hints.length > 40, `${hints.length}`);
    for (const known of ["forage node drain <name> --wait", "forage rollout promote <title> -n shop"])
      assert.ok(
        hints.some(({ line }) => line === known),
        known,
      );
  });

  test("includes the namespace in commands about objects of a namespace", () => {
    const without = hints.filter(
      ({ line }) =>
        line.includes("<") && !WITHOUT_NAMESPACE.test(line) && !/ (-n|--namespace|-A) /.test(line),
    );
    assert.deepEqual(without, []);
  });

  for (const { place, line } of hints)
    test(`${place}: ${line}`, async () => {
      const problems = await Promise.all(readings(line).map(problemOf));
      assert.ok(problems.includes(undefined), problems.join("\n"));
    });
});

/** The files with the usage of the daemons' own commands. */
const DAEMONS: Readonly<Record<string, string>> = {
  "forage-agent": "agent/src/setup/setup-flags.ts",
  "forage-coordinator": "coordinator/src/help-text.ts",
};
/** Texts that begin like a command of a daemon but are not. */
const DAEMON_PROSE = /^forage-(agent (on|and)|coordinator acme-client)\b/;

describe("commands of the daemons that messages and help name", () => {
  const lines = sources.flatMap((place) => {
    const text = withoutComments(readFileSync(join(root, place), "utf8"));
    const found = text.matchAll(/(?<![\w/.-])(forage-(?:agent|coordinator)) ([a-z][^`"\n;,)\\|]*)/g);
    return [...found].map(([line, daemon = "", rest = ""]) => ({ place, line, daemon, rest }));
  });
  const hints = lines.filter(({ line }) => !DAEMON_PROSE.test(line));

  test("finds commands of the daemons in messages and help", () =>
    assert.ok(hints.length > 15, `${hints.length}`));

  for (const { place, line, daemon, rest } of hints)
    test(`${place}: ${line}`, () => {
      const usage = readFileSync(join(root, DAEMONS[daemon] ?? ""), "utf8");
      const [task = ""] = /^[a-z-]+/.exec(rest) ?? [];
      assert.match(usage, new RegExp(`${daemon} ${task}\\b`), "there is no such command");
      for (const [flag] of rest.matchAll(/--[a-z][a-z-]*/g))
        assert.ok(usage.includes(flag), `no flag ${flag}`);
    });
});

/**
 * Returns the problem that the command finds before it calls the coordinator; undefined if there is
 * none.
 */
async function problemOf([, ...argv]: readonly string[]): Promise<string | undefined> {
  try {
    const { command } = parseLine(program, argv);
    if (command.run === undefined) return "is no command, but a group of them";
  } catch (error) {
    if (error instanceof CliError) return error.message;
    throw error;
  }
  const { stderr } = await runCommand(argv, { env: fake.env });
  return /is not KIND|there is no kind|its kind is missing|nodes have no|is not a pod:|is missing/.exec(
    stderr,
  )?.input;
}
