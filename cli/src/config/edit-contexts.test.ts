import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseConfig } from "./config-file.ts";
import { withContext, withCurrent, withoutContext } from "./edit-contexts.ts";

const TEXT = `# the lab
server: lab.example:7600
contexts:
  # customers are on it
  prod: { server: prod.example:7600, caFile: /prod.ca }
current: prod
`;
const LAB = { server: "lab.example:7600", caFile: "/lab.ca", tokenFile: "/lab.token" };

describe("editing contexts", () => {
  test("adds a context, and keeps comments and everything else", () => {
    const text = withContext(TEXT, "lab", LAB);
    assert.ok(text.startsWith(TEXT.slice(0, TEXT.indexOf("current"))), text);
    assert.deepEqual(parseConfig("c.yaml", text, "/home").contexts.get("lab"), LAB);
  });

  test("accepts any valid file", () => {
    for (const empty of ["", "# only a comment\n", "null\n", "contexts:\n", "contexts: {}\n"])
      assert.deepEqual(
        [...parseConfig("c.yaml", withContext(empty, "lab", LAB), "/home").contexts],
        [["lab", LAB]],
        empty,
      );
  });

  test("replaces a whole context", () => {
    const { contexts } = parseConfig("c.yaml", withContext(TEXT, "prod", { server: "b:1" }), "/home");
    assert.deepEqual([...contexts], [["prod", { server: "b:1" }]]);
  });

  test("makes no context current when the current one is removed", () => {
    const { current, contexts, settings } = parseConfig("c.yaml", withoutContext(TEXT, "prod"), "/home");
    assert.deepEqual([current, contexts.size, settings.server], [undefined, 0, "lab.example:7600"]);
    const both = withContext(TEXT, "lab", LAB);
    assert.equal(parseConfig("c.yaml", withoutContext(both, "lab"), "/home").current, "prod");
    assert.equal(parseConfig("c.yaml", withCurrent(both, "lab"), "/home").current, "lab");
  });
});
