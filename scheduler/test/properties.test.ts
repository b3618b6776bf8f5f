import assert from "node:assert/strict";
import { test } from "node:test";
import { Fleet } from "../src/fleet.ts";
import { compileRequirement } from "../src/match/requirement.ts";
import type { NodeSpec, PodSpec, SelectorRequirement } from "../src/types.ts";
import { aFleet, aNode, aPod } from "./builders/fleet.ts";
import { Random } from "./builders/random.ts";
import { randomNode, randomPod } from "./builders/random-pod.ts";
import { termMatches, termParses } from "./reference/match.ts";

test("other names for the nodes don't change which of them can take a pod", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Random(seed);
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

/** Nothing in the pod speaks of a node by its name. */
function withoutNames({ nodeAffinity: _, claimNodes: __, ...pod }: PodSpec): PodSpec {
  return pod;
}

function rename(node: NodeSpec, names: ReadonlyMap<string, string>): NodeSpec {
  const name = names.get(node.name) ?? "";
  const hostname =
    node.labels["kubernetes.io/hostname"] === undefined ? {} : { "kubernetes.io/hostname": name };
  return { ...node, name, labels: { ...node.labels, ...hostname } };
}

test("whatever a requirement says, it is matched or refused as the reference does", () => {
  const random = new Random(3);
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
    const random = new Random(5);
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

test("an extended resource is counted by its name, and one that no node offers keeps nothing else from its place", () => {
  const fleet = aFleet([aNode("n", { allocatable: { cpu: "1", pods: "9", "example.com/lamp": "2" } })]);
  const lamps = (name: string, count: string) =>
    aPod(name, { containers: [{ requests: { "example.com/lamp": count } }] });
  assert.equal(fleet.schedule(lamps("a", "2")), "n");
  assert.equal(
    fleet.explain(lamps("b", "1")).rejections[0]?.message,
    "insufficient example.com/lamp (needs 1, 0 free)",
  );
  for (let i = 0; i < 3_000; i++) {
    const invented = aPod("c", { containers: [{ requests: { [`example.com/r${i}`]: "1" } }] });
    assert.equal(fleet.place(invented), undefined);
  }
  assert.equal(fleet.place(aPod("d", { cpu: "1", memory: "0" })), "n");
  fleet.setNode(aNode("gpu", { allocatable: { cpu: "1", pods: "9", "nvidia.com/gpu": "1" } }));
  const gpu = aPod("e", { containers: [{ requests: { "nvidia.com/gpu": "1" } }] });
  assert.equal(fleet.schedule(gpu), "gpu");
});

test("a node that offers too many resources keeps those it has, and takes no places from other nodes", () => {
  const many = (count: number, prefix: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}.example/${100 + i}`, "1"]));
  const asking = (resource: string) => aPod("p", { containers: [{ requests: { [resource]: "1" } }] });
  const node = (name: string, devices: Record<string, string>) =>
    aNode(name, { allocatable: { cpu: "1", pods: "9", ...devices } });
  const fleet = new Fleet();
  assert.equal(fleet.setNode(node("a", many(300, "a"))).length, 236);
  assert.equal(fleet.place(asking("a.example/100")), "a");
  assert.equal(fleet.place(asking("a.example/300")), undefined);
  for (const name of ["b", "c"]) assert.deepEqual(fleet.setNode(node(name, many(64, name))), []);
  assert.equal(
    fleet.setNode(node("d", many(64, "d"))).length,
    3,
    "256 places, three of them taken from the start",
  );
  assert.deepEqual(fleet.setNode(node("e", many(64, "a"))), [], "what others offer needs no place");
  fleet.removeNode("d");
  assert.deepEqual(fleet.setNode(node("f", many(61, "f"))), [], "places are given back");
  assert.equal(fleet.place(asking("f.example/160")), "f");
});

test("pods that were bound before their node offered a resource count once it does", () => {
  const bare = aNode("n", { allocatable: { cpu: "1", pods: "9" } });
  const rich = aNode("n", { allocatable: { cpu: "1", pods: "9", "nvidia.com/gpu": "2" } });
  const gpu = (name: string) => aPod(name, { containers: [{ requests: { "nvidia.com/gpu": "1" } }] });
  const fleet = aFleet([bare]);
  fleet.bind(gpu("a"), "n");
  fleet.setNode(rich);
  assert.equal(fleet.schedule(gpu("b")), "n");
  assert.equal(fleet.schedule(gpu("c")), undefined);
  fleet.setNode(bare);
  fleet.setNode(rich);
  assert.equal(fleet.schedule(gpu("c")), undefined);
  fleet.unbind("default/a");
  assert.equal(fleet.schedule(gpu("c")), "n");
});
