import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { LinkUnderTest } from "./link-under-test.ts";
import { until } from "./until.ts";

test("moves on to another coordinator when the one that it uses ends", async (t) => {
  const first = await startCoordinator(t);
  const second = await startCoordinator(t, { authority: first.authority });
  for (const coordinator of [first, second]) coordinator.assign(anAssignment({ uid: "p1" }));
  const further = [second.port];
  const agent = await LinkUnderTest.start(t, first, first.mintToken(), { further });
  await until("connected to the first one", () => first.hellos.length > 0 && agent.pods.has("p1"));
  await first.close();
  await until("connected to the second one", () => second.hellos.length > 0);
  assert.equal(agent.pods.has("p1"), true);
});

async function startCoordinator(t: TestContext, options: Parameters<typeof FakeCoordinator.start>[0] = {}) {
  const coordinator = await FakeCoordinator.start(options);
  t.after(() => coordinator.close());
  return coordinator;
}
