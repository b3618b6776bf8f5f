import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { forestSchema } from "@forage/proto/forest-schema";

const root = join(import.meta.dirname, "../../../..");
const SERVICE = "forest.v1.ContainerServiceSpec";
/** The fields of a service that don't concern its pods, but their number. */
const ABOUT_REPLICAS: ReadonlySet<string> = new Set(["scaling", "update_strategy"]);

interface Line {
  readonly meaning: string;
  readonly tests: readonly string[];
}

describe("docs/reference/pod-fields.md has a line for each field of a pod, with a test that exists", () => {
  const text = readFileSync(join(root, "docs/reference/pod-fields.md"), "utf8");
  const lines = readLines(text);
  const titles = testTitles();
  const messages = messagesBelow(SERVICE);
  for (const message of messages) {
    test(message, () => {
      const described = lines.get(message.replace("forest.v1.", "")) ?? new Map<string, Line>();
      const fields = fieldsOf(message);
      assert.deepEqual([...described.keys()].sort(), fields.toSorted());
      for (const field of fields) {
        const { meaning = "", tests = [] } = described.get(field) ?? {};
        assert.notEqual(meaning, "", field);
        assert.notEqual(tests.length, 0, `${field} names no test`);
        for (const title of tests)
          assert.ok(titles.has(title), `${field} names "${title}", which isn't there`);
      }
    });
  }

  test("each field that can be rejected has a test for the rejection", () => {
    const named = testsNamedBefore(text);
    assert.ok(named.length > 10);
    for (const title of named) assert.ok(titles.has(title), `"${title}" isn't there`);
  });

  test("describes only messages that pods contain", () => {
    assert.deepEqual([...lines.keys()].sort(), messages.map((it) => it.replace("forest.v1.", "")).sort());
  });
});

/**
 * Parses the page: sections are messages, and each row of a table has a field in backquotes, its meaning, and titles of
 * tests.
 */
function readLines(text: string): Map<string, Map<string, Line>> {
  const found = new Map<string, Map<string, Line>>();
  for (const section of text.split(/^## /m).slice(1)) {
    const fields = new Map<string, Line>();
    for (const [, field = "", meaning = "", tests = ""] of section.matchAll(
      /^\| `(\w+)` \| (.*) \| (.*) \|$/gm,
    )) {
      assert.equal(fields.has(field), false, `${field} has two lines`);
      fields.set(field, { meaning, tests: tests.split("<br>").filter((title) => title !== "") });
    }
    found.set(section.slice(0, section.indexOf("\n")), fields);
  }
  return found;
}

/** Returns the test titles in the last column of tables above the first section. */
function testsNamedBefore(text: string): string[] {
  const head = text.slice(0, text.indexOf("\n## "));
  const rows = [...head.matchAll(/^\| .* \| (.*) \|$/gm)].map(([, tests = ""]) => tests);
  return rows.filter((tests) => tests !== "tests" && tests !== "---").flatMap((tests) => tests.split("<br>"));
}

function testTitles(): Set<string> {
  const titles = new Set<string>();
  for (const path of globSync("{hack,agent,coordinator}/**/*.test.ts", { cwd: root })) {
    if (path.includes("node_modules/")) continue;
    const source = readFileSync(join(root, path), "utf8");
    for (const [, title = ""] of source.matchAll(/\btest\(\s*"([^"\\]+)"/g)) titles.add(title);
  }
  return titles;
}

function fieldsOf(message: string): string[] {
  const names = (forestSchema[message]?.fields ?? []).map(({ name }) => name);
  return message === SERVICE ? names.filter((name) => !ABOUT_REPLICAS.has(name)) : names;
}

function messagesBelow(message: string, found: string[] = []): string[] {
  if (found.includes(message)) return found;
  found.push(message);
  const fields = fieldsOf(message);
  for (const { name, kind, type } of forestSchema[message]?.fields ?? [])
    if (kind === "message" && fields.includes(name)) messagesBelow(type, found);
  return found;
}
