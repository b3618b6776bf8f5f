import assert from "node:assert/strict";
import { test } from "node:test";
import { Fleet } from "../src/fleet.ts";
import { aFleet, aNode, aPod } from "./builders/fleet.ts";

test("an extended resource is counted by its name, and one that no node offers doesn't affect other pods", () => {
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

test("a node that offers too many resources keeps its existing ones, and takes no slots from other nodes", () => {
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

test("pods bound before their node offered a resource count once it does", () => {
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
