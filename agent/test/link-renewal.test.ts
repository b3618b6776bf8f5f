import assert from "node:assert/strict";
import { test } from "node:test";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { LinkUnderTest } from "./link-under-test.ts";
import { until } from "./until.ts";

test("renews its certificate soon when the coordinator requests it, and once for each connection", async (t) => {
  const coordinator = await FakeCoordinator.start();
  t.after(() => coordinator.close());
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => coordinator.connections === 1);
  coordinator.askForRenewal();
  coordinator.askForRenewal();
  await until("renewed", () => coordinator.renewals === 1);
  await until("gone over", () => coordinator.hellos.length === 2 && coordinator.connections === 1);
  assert.equal(
    agent.states.some((it) => it.kind === "failed"),
    false,
  );
  coordinator.assign(anAssignment({ uid: "p1" }));
  await until("the new stream works", () => agent.pods.has("p1"));
  assert.equal(coordinator.renewals, 1);
});
