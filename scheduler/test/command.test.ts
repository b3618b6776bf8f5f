import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

const MAIN = join(import.meta.dirname, "../src/cli/main.ts");
const POD = { name: "p", namespace: "default", containers: [{ requests: { cpu: "1" } }] };
const GOOD = {
  id: "s1",
  profile: "most",
  preemption: false,
  nodes: [{ name: "a", labels: {}, allocatable: { cpu: "2", memory: "1Gi", pods: "10" } }],
  existing: null,
  pending: [POD],
};

function run(scenarios: readonly unknown[], ...options: string[]) {
  const input = scenarios
    .map((scenario) => (typeof scenario === "string" ? scenario : JSON.stringify(scenario)))
    .join("\n");
  return spawnSync(process.execPath, [MAIN, ...options], { input, encoding: "utf8" });
}

test("answers each line with a line", () => {
  const { stdout, status } = run([GOOD, { ...GOOD, id: "s2" }], "--profile", "kube-least");
  const [first, second] = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(status, 0);
  assert.deepEqual([first.id, second.id], ["s1", "s2"]);
  assert.deepEqual(first.answers[0].ties, ["a"]);
  assert.equal(first.answers[0].chosen, "a");
});

test("rejects malformed lines with line number and field, and answers the others", () => {
  const [node] = GOOD.nodes;
  const cases: [unknown, RegExp][] = [
    ["{", /^line \d+: not JSON/],
    ["[]", /^line \d+: scenario: must be an object/],
    ["null", /^line \d+: scenario: must be an object/],
    [{ ...GOOD, id: undefined }, /^line \d+: id: is missing/],
    [{ ...GOOD, profile: "best" }, /^line \d+: profile: must be one of/],
    [
      { ...GOOD, nodes: [{ ...node, allocatable: { cpu: "1e3k" } }] },
      /^line \d+: nodes\[0\]\.allocatable\.cpu: "1e3k"/,
    ],
    [{ ...GOOD, nodes: [node, node] }, /^line \d+: nodes\[1\]\.name: a appears twice/],
    [{ ...GOOD, existing: [{ ...POD, node: "zzz" }] }, /^line \d+: existing\[0\]\.node: no node zzz/],
    [
      { ...GOOD, pending: [{ ...POD, containers: [{ requests: { cpu: "-1" } }] }] },
      /pending\[0\]\.containers\[0\]\.requests\.cpu/,
    ],
    [
      { ...GOOD, pending: [{ ...POD, tolerations: [{ operator: "In" }] }] },
      /pending\[0\]\.tolerations\[0\]\.operator/,
    ],
    [{ ...GOOD, pending: [{ ...POD, labls: {} }] }, /pending\[0\]\.labls: is not a field/],
    [
      { ...GOOD, pending: [{ ...POD, topologySpread: [{ maxSkew: 0 }] }] },
      /pending\[0\]\.topologySpread\[0\]/,
    ],
  ];
  const { stdout, stderr, status } = run([...cases.map(([scenario]) => scenario), GOOD]);
  const refusals = stderr.trim().split("\n");
  assert.equal(refusals.length, cases.length);
  for (const [index, [, expected]] of cases.entries()) {
    assert.match(refusals[index] ?? "", expected);
    assert.ok(refusals[index]?.startsWith(`line ${index + 1}: `));
  }
  assert.equal(status, 1);
  assert.equal(JSON.parse(stdout).id, "s1");
});

test("prints its usage", () => {
  for (const options of [["--profile", "best"], ["--what"]]) {
    const { stderr, status } = run([GOOD], ...options);
    assert.match(stderr, /Usage: schedule/);
    assert.equal(status, 2);
  }
});
