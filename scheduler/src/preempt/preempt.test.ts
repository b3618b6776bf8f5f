import assert from "node:assert/strict";
import { test } from "node:test";
import { aFleet, aNode, aPod } from "../../test/builders/fleet.ts";
import type { Profile } from "../types.ts";

const full = (profile: Profile = "pack") => {
  const fleet = aFleet([aNode("a", { cpu: "2" }), aNode("b", { cpu: "2" })], profile);
  fleet.bind(aPod("a1", { cpu: "1", priority: 1, labels: { app: "a" } }), "a");
  fleet.bind(aPod("a2", { cpu: "1", priority: 1, labels: { app: "a" } }), "a");
  fleet.bind(aPod("b1", { cpu: "1", priority: 1, labels: { app: "b" } }), "b");
  fleet.bind(aPod("b2", { cpu: "1", priority: 5, labels: { app: "b" } }), "b");
  return fleet;
};

test("preempts the least important pods, and no more than necessary", () => {
  const fleet = full();
  assert.deepEqual(fleet.preempt(aPod("p", { cpu: "1", priority: 10 })), {
    node: "b",
    victims: ["default/b1"],
  });
  assert.deepEqual(fleet.preempt(aPod("p", { cpu: "2", priority: 10 })), {
    node: "a",
    victims: ["default/a1", "default/a2"],
  });
  assert.equal(fleet.podsOn("a").length + fleet.podsOn("b").length, 4, "nothing is done by asking");
});

test("a node with too many pods loses the excess ones", () => {
  const withPods = (pods: string) => {
    const node = aNode("a", { cpu: "4" });
    return { ...node, allocatable: { ...node.allocatable, pods } };
  };
  const fleet = aFleet([withPods("3")]);
  for (const name of ["a1", "a2", "a3"]) fleet.bind(aPod(name, { cpu: "1", priority: 1 }), "a");
  const pod = aPod("p", { cpu: "1", priority: 10 });
  assert.equal(fleet.preempt(pod)?.victims.length, 1);
  fleet.setNode(withPods("2"));
  assert.equal(fleet.preempt(pod)?.victims.length, 2);
});

test("preempts only for a pod that may preempt, has the higher priority, and would fit afterwards", () => {
  const fleet = full();
  assert.equal(fleet.preempt(aPod("p", { cpu: "1", priority: 10, preemptionPolicy: "Never" })), undefined);
  assert.equal(fleet.preempt(aPod("p", { cpu: "1", priority: 1 })), undefined);
  assert.equal(fleet.preempt(aPod("p", { cpu: "3", priority: 10 })), undefined);
});

test("respects a budget: pack always, the kube profiles while another node is possible", () => {
  const budget = (app: string) => ({
    namespace: "default",
    name: app,
    selector: { matchLabels: { app } },
    disruptionsAllowed: 0,
  });
  const pod = aPod("p", { cpu: "1", priority: 10 });
  for (const profile of ["pack", "kube-most"] as const) {
    const fleet = full(profile);
    fleet.setBudget(budget("b"));
    assert.equal(fleet.preempt(pod)?.node, "a", profile);
    fleet.setBudget(budget("a"));
    assert.equal(fleet.preempt(pod)?.node, profile === "pack" ? undefined : "b", profile);
    fleet.removeBudget("default", "b");
    assert.equal(fleet.preempt(pod)?.node, "b", profile);
  }
});

test("a terminating pod makes no room in its domain, because spread already excludes it", () => {
  const fleet = aFleet([aNode("a", { zone: "z1" }), aNode("b", { zone: "z2", cpu: "1" })]);
  const spread = {
    labels: { app: "w" },
    topologySpread: [
      {
        maxSkew: 1,
        topologyKey: "zone",
        whenUnsatisfiable: "DoNotSchedule" as const,
        labelSelector: { matchLabels: { app: "w" } },
      },
    ],
  };
  fleet.bind(aPod("w1", { ...spread, cpu: "1", priority: 5 }), "a");
  fleet.bind(aPod("w2", { ...spread, cpu: "1", priority: 20 }), "a");
  fleet.bind(aPod("old", { ...spread, cpu: "1", priority: 1 }), "a");
  fleet.bind(aPod("full", { cpu: "1", priority: 50 }), "b");
  fleet.setTerminating("default/old");
  const pod = aPod("p", { ...spread, cpu: "1", priority: 10 });
  // Zone z1 has two pods that count and z2 none. Without w1 there would still be one too many, whatever happens to
  // "old".
  assert.equal(fleet.preempt(pod), undefined);
});

test("preempts for rules about other pods, and leaves the counters unchanged", () => {
  const fleet = aFleet([aNode("a"), aNode("b")]);
  const anti = { required: [{ topologyKey: "hostname", labelSelector: { matchLabels: { app: "w" } } }] };
  fleet.bind(aPod("w1", { labels: { app: "w" }, priority: 3 }), "a");
  fleet.bind(aPod("w2", { labels: { app: "w" }, priority: 2 }), "b");
  const pod = aPod("p", { podAntiAffinity: anti, priority: 10 });
  assert.deepEqual(fleet.preempt(pod), { node: "b", victims: ["default/w2"] });
  assert.equal(fleet.place(pod), undefined);
  fleet.unbind("default/w2");
  assert.equal(fleet.place(pod), "b");
});
