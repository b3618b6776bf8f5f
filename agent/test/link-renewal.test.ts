import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectResponse } from "@forage/proto/forage/agent/v1/agent";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { LinkUnderTest } from "./link-under-test.ts";
import { until } from "./until.ts";

test("renews its certificate soon when the coordinator requests it, once for each connection", async (t) => {
  const coordinator = await FakeCoordinator.start();
  t.after(() => coordinator.close());
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => coordinator.connections === 1);
  coordinator.say({ $case: "certificateRenewal", value: {} });
  coordinator.say({ $case: "certificateRenewal", value: {} });
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

test("ignores a message of a newer coordinator, and keeps the connection", async (t) => {
  const coordinator = await FakeCoordinator.start();
  t.after(() => coordinator.close());
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => coordinator.connections === 1);
  // This version decodes an unknown message as one without content.
  assert.equal(ConnectResponse.decode(UNKNOWN_MESSAGE).message, undefined);
  coordinator.say(undefined);
  coordinator.assign(anAssignment({ uid: "p1" }));
  await until("the next message is taken", () => agent.pods.has("p1"));
  assert.equal(coordinator.hellos.length, 1, "on the same connection");
});

/** Field 1000 with an empty message. */
const UNKNOWN_MESSAGE = Buffer.from("c23e00", "hex");
