import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { Fleet } from "../src/fleet.ts";
import { compileRequirement } from "../src/match/requirement.ts";
import type { NodeSpec, PodSpec, SelectorRequirement } from "../src/types.ts";
import { aFleet, aNode, aPod } from "./builders/fleet.ts";
import { randomNode, randomPod } from "./builders/random-pod.ts";
import { termMatches, termParses } from "./reference/match.ts";

test("renaming the nodes doesn't change which of them are feasible", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = randomOf(seed);
    const names = Array.from({ length: 8 }, (_, i) => `n${i}`);
    const renamed = new Map(
      names.map((name, i) => [name, random.shuffled(["x", "y", "z"]).join("") + i] as const),
    );
    const nodes = names.map((name) => randomNode(random, name));
    const pods = Array.from({ length: 12 }, (_, i) => withoutNames(randomPod(random, `p${i}`, 0.7)));
    const [plain, other] = [new Fleet(), new Fleet()];
    for (const node of nodes) plain.setNode(node);
    for (const node of random.shuffled(nodes)) other.setNode(rename(node, renamed));
    for (const pod of pods.slice(0, 8)) {
      const name = random.pick(names);
      plain.bind(pod, name);
      other.bind(pod, renamed.get(name) ?? "");
    }
    for (const pod of pods.slice(8)) {
      const expected = plain.explain(pod).feasible.map((name) => renamed.get(name) ?? "");
      assert.deepEqual(other.explain(pod).feasible, expected.sort(), `seed ${seed}`);
    }
  }
});

/** Removes references to nodes by name from the pod. */
function withoutNames({ nodeAffinity: _, claimNodes: __, ...pod }: PodSpec): PodSpec {
  return pod;
}

function rename(node: NodeSpec, names: ReadonlyMap<string, string>): NodeSpec {
  const name = names.get(node.name) ?? "";
  const hostname =
    node.labels["kubernetes.io/hostname"] === undefined ? {} : { "kubernetes.io/hostname": name };
  return { ...node, name, labels: { ...node.labels, ...hostname } };
}

test("matches or rejects each requirement as the reference does", () => {
  const random = randomOf(3);
  const values = [
    "",
    "a",
    "A-b_c.d",
    "-a",
    "a-",
    "1",
    "+1",
    "-1",
    "007",
    "9223372036854775808",
    "é",
    " ",
    "a".repeat(64),
  ];
  const operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] as const;
  for (let i = 0; i < 20_000; i++) {
    const requirement: SelectorRequirement = {
      key: "k",
      operator: random.pick(operators),
      values: Array.from({ length: random.below(3) }, () => random.pick(values)),
    };
    const term = { matchExpressions: [requirement] };
    const compiled = compileRequirement(requirement);
    assert.equal(compiled !== undefined, termParses(term), JSON.stringify(requirement));
    if (compiled === undefined) continue;
    const actual = random.chance(0.2) ? undefined : random.pick(values);
    const node = { name: "n", labels: actual === undefined ? {} : { k: actual }, allocatable: {} };
    assert.equal(compiled(actual), termMatches(term, node), `${JSON.stringify(requirement)} on ${actual}`);
  }
});

test("no node is ever overcommitted, in any profile, by pods placed until nothing fits", () => {
  for (const profile of ["pack", "kube-most", "kube-least"] as const) {
    const random = randomOf(5);
    const fleet = aFleet(
      Array.from({ length: 12 }, (_, i) => aNode(`n${i}`, { cpu: `${1 + (i % 5)}` })),
      profile,
    );
    const used = new Map<string, number>();
    for (let i = 0; i < 400; i++) {
      const milliCpu = 50 + random.below(900);
      const node = fleet.schedule(aPod(`p${i}`, { cpu: `${milliCpu}m`, memory: "1Mi" }));
      if (node !== undefined) used.set(node, (used.get(node) ?? 0) + milliCpu);
    }
    for (const [node, milliCpu] of used)
      assert.ok(milliCpu <= (1 + (Number(node.slice(1)) % 5)) * 1000, `${profile} ${node}`);
  }
});
