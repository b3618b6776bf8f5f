import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { aFleet, aNode, aPod, names } from "../../test/builders/fleet.ts";
import { Mirror } from "../../test/builders/mirror.ts";
import { randomNode, randomPod } from "../../test/builders/random-pod.ts";
import { reject } from "../../test/reference/filter.ts";
import { podKey } from "../pod/pod-key.ts";

test("scale-down selects from the fullest zone, then the fullest host, the youngest first", () => {
  const fleet = aFleet([aNode("a", { zone: "z1" }), aNode("b", { zone: "z1" }), aNode("c", { zone: "z2" })]);
  const web = (name: string) => aPod(name, { workload: "web" });
  for (const [name, node] of [
    ["w1", "a"],
    ["w2", "a"],
    ["w3", "b"],
    ["w4", "c"],
  ] as const)
    fleet.bind(web(name), node);
  fleet.bind(aPod("other", { workload: "other" }), "a");
  assert.deepEqual(fleet.pickVictims("web", 1), ["default/w2"]);
  assert.deepEqual(fleet.pickVictims("web", 2), ["default/w2", "default/w3"]);
  assert.equal(fleet.pickVictims("web", 9).length, 4);
  fleet.setTerminating("default/w2");
  assert.deepEqual(fleet.pickVictims("web", 1), ["default/w3"], "one that is going already is no victim");
});

test("scale-down never increases the skew", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = randomOf(seed);
    const fleet = aFleet(Array.from({ length: 6 }, (_, i) => aNode(`n${i}`, { zone: `z${i % 3}` })));
    const all = names(12);
    for (const name of all) fleet.bind(aPod(name, { workload: "w" }), `n${random.below(6)}`);
    const skew = () => {
      const counts = [0, 0, 0];
      for (const name of all) {
        const node = fleet.nodeOf(`default/${name}`);
        if (node !== undefined)
          counts[Number(node.slice(1)) % 3] = (counts[Number(node.slice(1)) % 3] ?? 0) + 1;
      }
      return Math.max(...counts) - Math.min(...counts);
    };
    const before = skew();
    for (const victim of fleet.pickVictims("w", 6)) fleet.unbind(victim);
    assert.ok(skew() <= Math.max(1, before), `seed ${seed}`);
  }
});

test("empties nodes with the fewest moves, into nodes that stay in use", () => {
  const fleet = aFleet(["a", "b", "c", "d"].map((name) => aNode(name)));
  fleet.bind(aPod("a1", { cpu: "2" }), "a");
  fleet.bind(aPod("b1", { cpu: "1" }), "b");
  fleet.bind(aPod("c1", { cpu: "500m" }), "c");
  const plan = fleet.defragment({ goal: "empty-nodes" });
  assert.equal(plan.emptied.length, 2);
  assert.ok(plan.moves.every(({ to }) => to !== "d" && !plan.emptied.includes(to)));
  assert.equal(plan.summary, "2 moves to empty 2 nodes");
  assert.equal(fleet.nodeOf("default/b1"), "b", "a plan moves nothing");
  assert.deepEqual(fleet.defragment({ goal: "empty-nodes", movable: () => false }).moves, []);
  assert.equal(fleet.defragment({ goal: "empty-nodes", maxMoves: 1 }).moves.length, 1);
});

test("restores spread with the fewest moves", () => {
  const fleet = aFleet(["a", "b", "c"].map((name) => aNode(name, { zone: name })));
  for (const name of ["w1", "w2", "w3"]) fleet.bind(aPod(name, { workload: "w" }), "a");
  const { moves } = fleet.defragment({ goal: "restore-spread" });
  assert.deepEqual(new Set(moves.map(({ to }) => to)), new Set(["b", "c"]));
  assert.equal(moves.length, 2);
});

test("a plan with rules that were never evaluated before leaves the counts unchanged", () => {
  const spread = {
    topologySpread: [
      {
        maxSkew: 1,
        topologyKey: "zone",
        whenUnsatisfiable: "DoNotSchedule",
        labelSelector: { matchLabels: { app: "web" } },
      },
    ],
  } as const;
  const mirror = new Mirror("pack");
  for (const name of ["a", "b", "c"]) mirror.setNode(aNode(name, { zone: name }));
  const web = (name: string) => ({ ...aPod(name, { workload: "web" }), labels: { app: "web" }, ...spread });
  for (const zone of ["a", "b", "c"]) mirror.bind(web(`on-${zone}`), zone);
  mirror.fleet.defragment({ goal: "empty-nodes" });
  assert.deepEqual(mirror.fleet.explain(web("next")).feasible, ["a", "b", "c"]);
});

test("for any fleet, each move is allowed at its time, and planning changes nothing", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = randomOf(seed);
    const mirror = new Mirror("pack");
    for (let i = 0; i < 7; i++) mirror.setNode(randomNode(random, `n${i}`));
    const templates = Array.from({ length: 3 }, (_, i) => randomPod(random, `t${i}`, 0.5));
    const specs = new Map(
      Array.from({ length: 14 }, (_, i) => {
        const pod = { ...random.pick(templates), name: `p${i}` };
        return [podKey(pod), pod] as const;
      }),
    );
    for (const pod of specs.values()) mirror.bind(pod, random.pick(mirror.nodeNames));
    const probe = { ...random.pick(templates), name: "probe" };
    for (const goal of ["empty-nodes", "restore-spread"] as const) {
      const before = mirror.fleet.explain(probe);
      const { moves, emptied } = mirror.fleet.defragment({ goal });
      assert.deepEqual(mirror.fleet.explain(probe), before, `seed ${seed}`);
      assert.equal(mirror.rebuild().place(probe), mirror.fleet.place(probe), `seed ${seed}`);
      for (const { pod, from, to } of moves) {
        const spec = specs.get(pod);
        const node = mirror.cluster.nodes.find(({ name }) => name === to);
        assert.ok(spec !== undefined && node !== undefined);
        assert.equal(mirror.fleet.nodeOf(pod), from);
        mirror.unbind(pod);
        assert.equal(reject(spec, node, mirror.cluster), undefined, `seed ${seed}: ${pod} to ${to}`);
        mirror.bind(spec, to);
      }
      for (const name of emptied) assert.deepEqual(mirror.fleet.podsOn(name), [], `seed ${seed}`);
    }
  }
});
