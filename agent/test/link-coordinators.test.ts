import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Clock, systemClock } from "../src/clock.ts";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { LinkUnderTest } from "./link-under-test.ts";
import { until } from "./until.ts";

test("switches to another coordinator when the current one ends", async (t) => {
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

test("joins through another coordinator if the first configured one does not respond", async (t) => {
  const first = await startCoordinator(t);
  const second = await startCoordinator(t, { authority: first.authority });
  await first.close();
  const agent = await LinkUnderTest.start(t, first, second.mintToken(), { further: [second.port] });
  await until("joined and connected", () => second.hellos.length > 0);
  assert.ok(await agent.identity.load());
});

test("learns of further coordinators, switches to them and later draws one again, without losing the connection", async (t) => {
  const first = await startCoordinator(t);
  const second = await startCoordinator(t, { authority: first.authority });
  first.coordinators = { addresses: [`127.0.0.1:${second.port}`] };
  const agent = await LinkUnderTest.start(t, first, first.mintToken(), { clock: new PatientClock() });
  await until("connected to the first one", () => first.hellos.length > 0);
  await first.close();
  await until("connected to the second one", () => second.connections === 1);
  const { states } = agent;
  const known = states.length;
  const again = await first.successor();
  t.after(() => again.close());
  await until("connected to the first one again", () => again.hellos.length > 0 && second.connections === 0);
  const later = states.slice(known).map(({ kind }) => kind);
  assert.deepEqual(
    later.filter((kind) => kind !== "connected"),
    [],
  );
});

/** Lets long waits pass 200 times as fast. */
class PatientClock implements Clock {
  nowMs(): number {
    return systemClock.nowMs();
  }

  monotonicMs(): number {
    return 200 * systemClock.monotonicMs();
  }

  schedule(delayMs: number, run: () => void): () => void {
    return systemClock.schedule(delayMs > 20_000 ? delayMs / 200 : delayMs, run);
  }
}

async function startCoordinator(t: TestContext, options: Parameters<typeof FakeCoordinator.start>[0] = {}) {
  const coordinator = await FakeCoordinator.start(options);
  t.after(() => coordinator.close());
  return coordinator;
}
