import assert from "node:assert/strict";
import { test } from "node:test";
import { checkLabName, MAX_LAB_HOSTS, planHosts } from "./lab-plan.ts";

test("the first host has the coordinator and an agent, the others an agent each", () => {
  const hosts = planHosts({ count: 3, coordinatorOwnHost: false });
  assert.deepEqual(
    hosts.map(({ name, address, runsCoordinator, runsAgent }) => [name, address, runsCoordinator, runsAgent]),
    [
      ["h1", "10.77.0.11", true, true],
      ["h2", "10.77.0.12", false, true],
      ["h3", "10.77.0.13", false, true],
    ],
  );
});

test("a coordinator with a separate host runs no agent and comes first", () => {
  const [first, ...agents] = planHosts({ count: 2, coordinatorOwnHost: true });
  assert.deepEqual(first, {
    ...{ name: "coordinator", address: "10.77.0.10", labels: {} },
    ...{ runsCoordinator: true, runsAgent: false },
  });
  assert.equal(agents.length, 2);
  assert.ok(agents.every(({ runsCoordinator }) => !runsCoordinator));
});

test("labels spread hosts over three zones, and each rack has a host of every zone", () => {
  const labels = planHosts({ count: 5, coordinatorOwnHost: false }).map((host) => host.labels);
  assert.deepEqual(labels, [
    { zone: "z1", rack: "r1" },
    { zone: "z2", rack: "r1" },
    { zone: "z3", rack: "r1" },
    { zone: "z1", rack: "r2" },
    { zone: "z2", rack: "r2" },
  ]);
});

test("a lab has at least one host and at most as many as its network and memory allow", () => {
  for (const count of [0, -1, 1.5, Number.NaN, MAX_LAB_HOSTS + 1])
    assert.throws(
      () => planHosts({ count, coordinatorOwnHost: false }),
      { code: "BAD_USAGE" },
      String(count),
    );
  assert.equal(planHosts({ count: MAX_LAB_HOSTS, coordinatorOwnHost: false }).length, MAX_LAB_HOSTS);
});

test("names of labs can be part of paths and interfaces", () => {
  assert.equal(checkLabName("ci2"), "ci2");
  for (const name of ["", "../x", "A", "2x", "a".repeat(17), "a b"])
    assert.throws(() => checkLabName(name), { code: "BAD_USAGE" }, name);
});
