import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { defineCommand, groupCommands } from "./definition.ts";
import { parseLine } from "./parse.ts";

const show = defineCommand({
  name: "show",
  summary: "Show",
  operands: [{ name: "NAME", required: true, help: "which" }],
  flags: {
    file: { type: "list", short: "f", hint: "FILE", help: "file" },
    stdin: { type: "switch", short: "i", help: "in" },
    tty: { type: "switch", short: "t", help: "tty" },
    tail: { type: "text", hint: "N", help: "tail" },
    role: { type: "text", choices: ["viewer", "editor"], help: "role" },
  },
  run: async () => EXIT.ok,
});
const execute = defineCommand({
  name: "execute",
  summary: "Execute",
  operands: [
    { name: "POD", required: true, help: "which" },
    { name: "CMD", required: true, repeated: true, afterDashes: true, help: "what" },
  ],
  run: async () => EXIT.ok,
});
const root = groupCommands("prog", "Program", [show, groupCommands("thing", "Things", [execute])]);
const parse = (line: string) => parseLine(root, line.split(" ").filter(Boolean));

describe("accepted arguments", () => {
  test("accepts global flags anywhere", () => {
    for (const line of [
      "-n a show x -o json",
      "show -n a -o json x",
      "show x -o=json -na",
      "-o json show --namespace=a x",
    ]) {
      const { flags, operands, command } = parse(line);
      assert.deepEqual([flags.namespace, operands, command.name], ["a", ["x"], "show"], line);
    }
    assert.equal(parse("show x -o=json").flags.output, "json");
  });

  test("keeps the order of repeated flags, and accepts joined switches", () => {
    const { flags } = parse("show x -f a --file b -it");
    assert.deepEqual([flags.file, flags.stdin, flags.tty, flags.tail], [["a", "b"], true, true, undefined]);
  });

  test("keeps words after -- unchanged", () => {
    const { operands, afterDashes } = parse("thing execute pod -- ls -l --help -- x");
    assert.deepEqual([operands, afterDashes], [["pod"], ["ls", "-l", "--help", "--", "x"]]);
  });

  test("accepts - as a value", () => assert.deepEqual(parse("show x -f -").flags.file, ["-"]));
  test("accepts a group without a command", () => assert.equal(parse("thing").command.name, "thing"));
  test("requires no operands with --help", () => assert.equal(parse("show --help").flags.help, true));
  test("accepts a value that begins with a dash", () =>
    assert.equal(parse("show x --tail=-5").flags.tail, "-5"));
});

describe("rejects invalid command lines before anything runs", () => {
  const cases: Record<string, RegExp> = {
    shwo: /there is no command "prog shwo" \(did you mean "show"\?\)/,
    "thing exec": /there is no command "prog thing exec"/,
    show: /NAME is missing/,
    "show x y": /unexpected "y"/,
    "show x --taill 5": /unknown option --taill \(did you mean "--tail"\?\)/,
    "show x -q": /unknown option -q/,
    "show x --tail": /--tail needs a value/,
    "show x --tail --stdin": /--tail needs a value; to give it "--stdin" write --tail=--stdin/,
    "show x --stdin=no": /--stdin accepts no value/,
    "show x --role admin": /--role is one of viewer, editor, not "admin"/,
    "show x -o jsno": /-o is one of .*\(did you mean "json"\?\)/,
    "show x --tail 1 --tail 2": /--tail is given twice/,
    "show x -- y": /unexpected "y"/,
    "thing execute pod": /CMD is missing: put it after --/,
    "thing execute pod ls": /unexpected "ls"; the command comes after --/,
    "thing execute pod -l": /unknown option -l/,
    "--constructor show x": /unknown option --constructor/,
  };
  for (const [line, message] of Object.entries(cases)) {
    test(line, () => {
      assert.throws(
        () => parse(line),
        (error) => error instanceof CliError && error.code === "USAGE" && message.test(error.message),
      );
    });
  }
});
