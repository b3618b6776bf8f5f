import assert from "node:assert/strict";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { KnownGateway } from "../agent/src/gateway/known-gateway.ts";
import { JournalKey } from "../agent/src/journal/journal-key.ts";
import { KnownServices } from "../agent/src/services/known-services.ts";
import { testGateway } from "../agent/test/gateway-contract.ts";
import { testHostAddresses } from "../agent/test/host-addresses-contract.ts";
import { testJournalFiles } from "../agent/test/journal-files-contract.ts";
import { testClock } from "../common/test/clock-contract.ts";
import type { NewCertificate } from "../coordinator/src/certificates/issuer.ts";
import { testIssuer } from "../coordinator/test/certificates/issuer-contract.ts";
import { SkipClock } from "../coordinator/test/support/skip-clock.ts";
import { simulatedClient } from "./agent-client.ts";
import { NodeLink } from "./fleet/network.ts";
import { clockOf } from "./fleet/process-clock.ts";
import { ProcessGate } from "./fleet/process-gate.ts";
import { simTime } from "./fleet/sim-time.ts";
import type { Handler } from "./fleet/stream.ts";
import { filesOn, MemoryDisk } from "./memory-files.ts";
import { passingTime } from "./passing-time.ts";
import { ServingHost, SimLan } from "./serving-host.ts";
import { SimGateway } from "./sim-gateway.ts";
import { readCertificate, SimIssuer } from "./sim-issuer.ts";
import { testAgentTransport } from "./transport-contract.ts";
import { wholeDelays } from "./whole-delays.ts";

testJournalFiles("disk in memory", async (t) => {
  const { time, life } = passingTime((end) => t.after(end));
  const files = filesOn(new MemoryDisk(), { clock: time, random: () => 0.5, life });
  return { files, dir: "/journal/pods" };
});

testAgentTransport("simulated streams", async (t) => {
  const { time, life } = passingTime((end) => t.after(end));
  const way = new NodeLink(time, randomOf(1));
  let coordinator: { readonly handler: Handler; readonly life: AbortController } | undefined;
  const dial = () =>
    coordinator && {
      handler: coordinator.handler,
      dead: coordinator.life.signal,
      gate: new ProcessGate(time),
    };
  const later = (delayMs: number, run: () => void): void => void time.schedule(Math.round(delayMs), run);
  const nothing = (): void => {};
  return {
    clock: clockOf(time, life, 0),
    openClient: () =>
      simulatedClient({
        ...{ way, dial, later, noticed: (notice) => later(way.delayMs(), notice) },
        ...{ opened: nothing, closed: nothing, received: nothing },
      }),
    serve: async (handler) => {
      coordinator = { handler, life: new AbortController() };
    },
    die: () => {
      coordinator?.life.abort();
      coordinator = undefined;
    },
  };
});

testHostAddresses("simulated hosts", async (t) => {
  const { time: clock } = passingTime((end) => t.after(end));
  const lan = new SimLan();
  const [one, two] = ["n1", "n2"].map((name, at) => {
    const host = new ServingHost(lan, name, `192.0.2.${at + 1}`, clock.monotonicMs);
    return host.commandsFor({ clock, random: () => 0.5 });
  });
  assert.ok(one !== undefined && two !== undefined);
  const pause = () => clock.sleep(100);
  return { one, two, interface: "eth0", free: ["192.0.2.50", "192.0.2.51"], pause };
});

testGateway("a simulated proxy", async (t) => {
  const { time: clock, life } = passingTime((end) => t.after(end));
  const random = () => 0.5;
  const key = new JournalKey(Buffer.alloc(32), "test");
  const files = filesOn(new MemoryDisk(), { clock, random, life });
  const host = new ServingHost(new SimLan(), "n1", "192.0.2.1", clock.monotonicMs);
  const onError = (error: unknown): void => assert.fail(String(error));
  const startAgent = async () => {
    const common = { clock, files, onError };
    const known = await KnownGateway.open({ ...common, dir: "/gateway", key });
    const services = await KnownServices.open({ ...common, dir: "/services" });
    const gateway = new SimGateway({ clock, random, host, known, services });
    gateway.start();
    return { known, services, gateway };
  };
  let agent = await startAgent();
  agent.services.apply(ServiceUpdate.fromPartial({ full: true }));
  return {
    gateway: () => agent.gateway,
    restartAgent: async () => {
      await Promise.all([agent.known.close(), agent.services.close()]);
      agent = await startAgent();
    },
    pause: () => clock.sleep(1_000),
  };
});

testIssuer("the simulated authority", async (t) => {
  const { time } = passingTime((end) => t.after(end));
  const issuer = new SimIssuer({ clock: time, random: randomOf(1).next });
  const stop = (): void => {
    issuer.isAway = true;
  };
  const hostnamesOf = (certificate: NewCertificate) => [readCertificate(certificate).hostname];
  return { issuer, nowMs: time.nowMs, hostnamesOf, stop };
});

testClock("a simulated process's clock", () => {
  const time = simTime();
  return { clock: clockOf(time, { aborted: false }, 3_000), advance: (ms) => time.advance(ms) };
});

testClock("a simulated agent's clock", () => {
  const time = simTime();
  const clock = wholeDelays(clockOf(time, { aborted: false }, 0));
  return { clock, advance: (ms) => time.advance(ms) };
});

testClock("a clock that skips waiting times", () => {
  // The underlying time never advances.
  const clock = new SkipClock(new VirtualClock());
  return { clock, advance: (ms) => clock.skip(ms) };
});

testClock("a skipping clock on which nothing waits", () => {
  const real = new VirtualClock();
  return { clock: new SkipClock(real), advance: (ms) => real.advance(ms) };
});
