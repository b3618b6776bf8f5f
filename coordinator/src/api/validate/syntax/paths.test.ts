import assert from "node:assert/strict";
import { test } from "node:test";
import { describeRule } from "../../../../test/support/rules.ts";
import { absolutePathProblem, mountPathProblem, normalPath, relativePathProblem } from "./paths.ts";

describeRule("absolutePathProblem", absolutePathProblem, {
  valid: ["/", "/a/b", "/a..b", "/..."],
  invalid: ["", "a", "./a", "/a/../b", "/..", "/a\0", "/a\n", `/${"x".repeat(4095)}`],
});

describeRule("relativePathProblem", relativePathProblem, {
  valid: ["a", "a/b", "..a", "a b"],
  invalid: ["", "/a", "..", "a/..", "../a", "a\0b"],
});

describeRule("mountPathProblem", mountPathProblem, {
  valid: ["/data", "/a/b/"],
  invalid: ["", "/", "//", "/./", "data", "/a:ro", "/a,b", "/a/../.."],
});

test("normalPath returns the same text for equivalent paths", () => {
  for (const path of ["/a/b", "/a/b/", "//a//b", "/a/./b/."]) assert.equal(normalPath(path), "/a/b");
  assert.equal(normalPath("a/b"), "a/b");
});
