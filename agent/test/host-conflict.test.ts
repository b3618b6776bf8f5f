import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { LinkUnderTest } from "./link-under-test.ts";
import { until } from "./until.ts";

test("a join that the host rejects gives the reason and leaves the token unused", async (t) => {
  const coordinator = await FakeCoordinator.start();
  t.after(() => coordinator.close());
  const agent = await LinkUnderTest.start(t, coordinator, "");
  const asked: string[] = [];
  let refuses = true;
  agent.mayJoin = async (authority) => {
    asked.push(authority);
    if (refuses) throw new Error("the agent of node b belongs to the same cluster");
  };
  const token = coordinator.mintToken();
  await writeFile(agent.tokenFile, token);
  await until("refused", () => agent.link.state.code === "REFUSED");
  assert.match(agent.link.state.message ?? "", /node b belongs to the same cluster/);
  assert.deepEqual(coordinator.joins, []);
  assert.ok(asked.every((authority) => token.includes(authority)));
  refuses = false;
  await until("joined", () => agent.link.state.kind === "connected");
});
