import assert from "node:assert/strict";
import { test } from "node:test";
import { toGitStatus } from "./read-git-status.ts";

const MANY = Array.from({ length: 101 }, (_, index) => `f${index}`);

test("lists the first hundred of each kind, and counts all", () => {
  const changed = MANY.map((name) => `1 .M N... 100644 100644 100644 abc abc ${name}`);
  const untracked = MANY.map((name) => `? ${name}`);
  const status = toGitStatus([...changed, ...untracked].join("\0"), MANY.join("\0"));
  const first = MANY.slice(0, 100);
  assert.deepEqual(
    [status.uncommitedFiles, status.untrackedFiles, status.unpushedCommits],
    [first, first, first],
  );
  const totals = [status.totalUncommitedFiles, status.totalUntrackedFiles, status.totalUnpushedCommits];
  assert.deepEqual(totals, [101n, 101n, 101n]);
});

test("reads the branch, the commit and the new names of renamed files", () => {
  const head = ["# branch.oid abc", "# branch.head main"];
  const renamed = ["2 R. N... 100644 100644 100644 abc abc R100 new name", "old name"];
  const conflict = "u UU N... 100644 100644 100644 100644 abc abc abc both";
  const status = toGitStatus([...head, ...renamed, conflict, ""].join("\0"), "");
  assert.deepEqual([status.branch, status.latestCommit], ["main", "abc"]);
  assert.deepEqual(status.uncommitedFiles, ["new name", "both"]);
  assert.deepEqual([status.untrackedFiles, status.unpushedCommits], [[], []]);
});

test("has neither a branch nor a commit if the repository has none", () => {
  const status = toGitStatus("# branch.oid (initial)\0# branch.head (detached)\0", "");
  assert.deepEqual([status.branch, status.latestCommit], ["", ""]);
});
