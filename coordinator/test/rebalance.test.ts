import assert from "node:assert/strict";
import { test } from "node:test";
import type { RebalanceResponse } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { Fleet } from "./support/fleet.ts";
import { aContainerService } from "./support/requests.ts";
import { collected, until } from "./support/until.ts";

const LIMIT = { timeout: 120_000 };
const REQUEST = { goal: "", maxMoves: 0, maxInFlight: 0, dryRun: false };

test(
  "spreads pods to a node that joined later, without fewer ready replicas than desired",
  LIMIT,
  async (t) => {
    const fleet = await Fleet.start(t, ["n1"]);
    await fleet.apply(aContainerService("web", { scaling: { replicas: 4 } }));
    await fleet.join("n2");
    const before = await fleet.allPods();
    const [plan, ...rest] = await asked(fleet, { dryRun: true });
    assert.deepEqual(rest, []);
    assert.equal(plan?.summary, "2 moves to spread replicas evenly");
    assert.deepEqual(
      plan?.moves.map(({ from, to, state }) => [from, to, state]),
      [1, 2].map(() => ["n1", "n2", "planned"]),
    );
    assert.deepEqual(
      (await fleet.allPods()).map(({ uid }) => uid).sort(),
      before.map(({ uid }) => uid).sort(),
    );
    const least = fleet.watchLeast();
    const states = (await asked(fleet, {})).flatMap(({ changed }) =>
      changed === undefined ? [] : [changed.state],
    );
    assert.deepEqual(states, ["moving", "moved", "moving", "moved"]);
    await until("two are on each", async () => {
      const pods = await fleet.allPods();
      return ["n1,n1,n2,n2"].includes(
        pods
          .map((pod) => pod.node)
          .sort()
          .join(),
      );
    });
    assert.ok((await least()) >= 3, "one of four may be missing");
    assert.equal((await asked(fleet, { dryRun: true }))[0]?.summary, "nothing to gain");
  },
);

test("rebalances at the configured interval", LIMIT, async (t) => {
  const rebalance = { intervalSeconds: 10, maxMoves: 2, goal: "spread" as const };
  const fleet = await Fleet.start(t, ["n1"], { rebalance, heartbeatIntervalSeconds: 60 });
  await fleet.apply(aContainerService("web", { scaling: { replicas: 2 } }));
  await fleet.join("n2");
  assert.equal(new Set((await fleet.allPods()).map((pod) => pod.node)).size, 1);
  fleet.world.clock.skip(10_000);
  await until("one is on each", async () => {
    const pods = await fleet.allPods();
    return (
      pods
        .map((pod) => pod.node)
        .sort()
        .join() === "n1,n2"
    );
  });
});

test("refuses invalid requests", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1"]);
  for (const wrong of [{ goal: "faster" }, { maxMoves: 101 }, { maxInFlight: 21 }])
    await assert.rejects(asked(fleet, wrong), { code: status.INVALID_ARGUMENT });
});

function asked(fleet: Fleet, change: Partial<typeof REQUEST>): Promise<RebalanceResponse[]> {
  return collected<RebalanceResponse>(fleet.operator.rebalance({ ...REQUEST, ...change }));
}
