import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Notification } from "@forage/proto/forage/operator/v1/operator";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());

test("lists receivers with their filters, counts and problems", async () => {
  const ops = {
    name: "ops",
    origin: "https://hooks.example",
    types: ["Warning"],
    delivered: 7n,
    dropped: 1n,
  };
  fake.answers.listNotifications = () => ({
    notifications: [Notification.fromPartial({ ...ops, reasons: ["RolledBack"], problem: "HTTP 503" })],
  });
  assert.deepEqual((await forage("notification ls")).stdout.split("\n"), [
    "NAME  RECEIVER               TYPES    REASONS     SENT  DROPPED  PROBLEM",
    "ops   https://hooks.example  Warning  RolledBack     7        1  HTTP 503",
    "",
  ]);
  fake.answers.listNotifications = () => ({ notifications: [] });
  assert.match((await forage("notification ls")).stderr, /events are sent nowhere/);
});

test("shows the receiver's answer to a test, and fails without one", async () => {
  fake.answers.testNotification = () => ({ delivery: "ops-test-1", delivered: true, reason: "" });
  const good = await forage("notification test ops");
  assert.deepEqual([good.stdout, good.exitCode], ["ops has accepted the message ops-test-1\n", 0]);
  assert.deepEqual(fake.requests("testNotification"), [{ name: "ops" }]);
  fake.answers.testNotification = () => ({ delivery: "ops-test-2", delivered: false, reason: "HTTP 401" });
  const bad = await forage("notification test ops");
  assert.deepEqual([bad.stdout, bad.exitCode], ["ops was not reached: HTTP 401\n", 1]);
});
