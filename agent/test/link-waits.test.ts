import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import { CertificateAuthority } from "@forage/identity/ca";
import { type Clock, systemClock } from "../src/clock.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { LinkUnderTest } from "./link-under-test.ts";
import { until } from "./until.ts";

test("retries a rejection with increasing delays up to one minute", async (t) => {
  const coordinator = await startCoordinator(t);
  const clock = new FastClock();
  const token = coordinator.mintToken({ expiresAtMs: 1 });
  await LinkUnderTest.start(t, coordinator, token, { clock });
  await until("tried often", () => coordinator.joins.length >= 10);
  // The fixed random number 0.05 times 1 s, 2 s, 4 s … 60 s.
  assert.deepEqual(clock.delaysMs.slice(0, 9), [50, 100, 200, 400, 800, 1_600, 3_000, 3_000, 3_000]);
});

test("for a coordinator with a certificate that is not valid yet, the error recommends to compare the clocks", async (t) => {
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;
  const authority = await CertificateAuthority.create("test", { nowMs, randomBytes });
  const coordinator = await FakeCoordinator.start({ authority });
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => agent.link.state.kind === "connected");
  await coordinator.close();
  // Its clock is three hours ahead at its next start.
  aheadMs = 3 * 3_600_000;
  const ahead = await FakeCoordinator.start({ authority, port: coordinator.port });
  t.after(() => ahead.close());
  await until("the reason is given", () => /compare the clocks/.test(agent.link.state.message ?? ""));
  assert.match(
    agent.link.state.message ?? "",
    /not valid by this host's clock.*certificate is not yet valid/,
  );
  assert.equal(agent.link.state.code, "UNAVAILABLE");
});

test("ended connections leave no timer", async (t) => {
  let coordinator = await startCoordinator(t);
  const clock = new FastClock();
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken(), { clock });
  for (let round = 0; round < 3; round += 1) {
    await until("connected", () => agent.link.state.kind === "connected" && coordinator.connections === 1);
    await coordinator.close();
    await until("noticed", () => agent.link.state.kind !== "connected");
    coordinator = await coordinator.successor();
  }
  t.after(() => coordinator.close());
  await until("connected", () => agent.link.state.kind === "connected");
  // The timers of the next heartbeat, the next renewal and the next batch of statuses.
  await until("the timers of one connection", () => clock.open <= 3, 10_000);
});

test("reports changes of the node that happened while the connection was being set up", async (t) => {
  const coordinator = await startCoordinator(t);
  let agent: LinkUnderTest | undefined;
  coordinator.onHello = () => {
    if (agent !== undefined) agent.address = "127.0.0.2";
  };
  const clock = new FastClock();
  agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken(), { clock });
  await until("the change is reported", () => coordinator.node?.address === "127.0.0.2");
  assert.equal(coordinator.hellos[0]?.node?.address, "127.0.0.1");
  const { heartbeats } = coordinator;
  await until("more heartbeats", () => coordinator.heartbeats > heartbeats + 3);
  assert.equal(coordinator.nodeReports, 1, "what has not changed is not reported again");
});

test("sends heartbeats at the interval that the coordinator requests on the connection", async (t) => {
  const coordinator = await startCoordinator(t);
  const clock = new FastClock();
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken(), { clock });
  await until("connected", () => agent.link.state.kind === "connected" && coordinator.connections === 1);
  coordinator.say({ $case: "heartbeatInterval", value: { intervalMs: 12_345 } });
  await until("it waits for the new interval", () => clock.delaysMs.includes(12_345));
});

test("leaves a coordinator that stops answering heartbeats, and connects again", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.answersHeartbeats = false;
  const clock = new FastClock();
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken(), { clock });
  await until("it notices", () =>
    agent.states.some(({ message = "" }) => /answers no heartbeats/.test(message)),
  );
  coordinator.answersHeartbeats = true;
  const { heartbeats } = coordinator;
  await until("connected", () => agent.link.state.kind === "connected");
  await until("many heartbeats", () => coordinator.heartbeats > heartbeats + 30);
  assert.equal(coordinator.hellos.length, 2);
});

test("connects again with PINGs to a coordinator of an earlier version, which answers no heartbeats", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.isOfEarlierVersion = true;
  const clock = new FastClock();
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken(), { clock });
  await until("connected", () => agent.link.state.kind === "connected" && coordinator.connections === 1);
  const { heartbeats } = coordinator;
  await until("many heartbeats", () => coordinator.heartbeats > heartbeats + 30);
  assert.equal(coordinator.hellos.length, 2);
  assert.deepEqual(
    agent.states.map(({ kind }) => kind),
    ["joining", "connecting", "connected"],
  );
});

/** Waits for one hundredth of the time. */
class FastClock implements Clock {
  readonly delaysMs: number[] = [];
  open = 0;

  nowMs(): number {
    return systemClock.nowMs();
  }

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  schedule(delayMs: number, run: () => void): () => void {
    this.delaysMs.push(delayMs);
    this.open += 1;
    let isOpen = true;
    const over = (): void => {
      if (isOpen) this.open -= 1;
      isOpen = false;
    };
    const cancel = systemClock.schedule(delayMs / 100, () => {
      over();
      run();
    });
    return () => {
      over();
      cancel();
    };
  }
}

async function startCoordinator(t: TestContext, options: Parameters<typeof FakeCoordinator.start>[0] = {}) {
  const coordinator = await FakeCoordinator.start(options);
  t.after(() => coordinator.close());
  return coordinator;
}
