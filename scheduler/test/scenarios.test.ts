import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { answer, type ScenarioAnswer } from "../src/cli/answer.ts";
import { parseScenario } from "../src/cli/scenario.ts";

const lines = (name: string) =>
  readFileSync(join(import.meta.dirname, "scenarios", name), "utf8")
    .split("\n")
    .filter((line) => line !== "");

const sorted = (candidates: Readonly<Record<string, readonly string[]>> = {}) =>
  Object.fromEntries(Object.entries(candidates).map(([node, victims]) => [node, [...victims].sort()]));

test("gives the same answers to all scenarios as kube-scheduler's own plugins", () => {
  const expected = lines("answers.jsonl").map((line) => JSON.parse(line) as ScenarioAnswer);
  let pods = 0;
  for (const [index, line] of lines("scenarios.jsonl").entries()) {
    const scenario = parseScenario(line);
    const given = expected[index];
    assert.ok(given !== undefined && given.id === scenario.id);
    const own = answer(scenario, scenario.profile === "most" ? "kube-most" : "kube-least", given);
    for (const [i, theirs] of given.answers.entries()) {
      const ours = own.answers[i];
      const at = `${scenario.id} ${theirs.pod}`;
      assert.deepEqual(ours?.feasible, theirs.feasible, `${at} feasible`);
      assert.deepEqual(ours?.why, theirs.why, `${at} why`);
      assert.deepEqual(ours?.total, theirs.total, `${at} total`);
      assert.deepEqual(ours?.ties, theirs.ties, `${at} ties`);
      if (theirs.ties !== undefined) assert.ok(theirs.ties.includes(ours?.chosen ?? ""), `${at} chosen`);
      assert.deepEqual(
        sorted(ours?.preempt?.candidates),
        sorted(theirs.preempt?.candidates),
        `${at} candidates`,
      );
      assert.deepEqual(ours?.preempt?.best, theirs.preempt?.best, `${at} best`);
      if (theirs.preempt !== undefined)
        assert.ok(theirs.preempt.best.includes(ours?.preempt?.node ?? ""), `${at} node`);
      pods++;
    }
  }
  assert.equal(pods, 590);
});
