import { randomOf } from "@forage/common/random";
import { conformance } from "../coordinator/src/store/conformance.ts";
import { openEtcdStore } from "../coordinator/src/store/etcd/etcd-store.ts";
import { prefixed } from "../coordinator/src/store/etcd/prefixed.ts";
import { testEtcd } from "../coordinator/test/store/etcd-contract.ts";
import { directEtcd } from "./cluster/direct-etcd.ts";
import { EtcdLink } from "./cluster/etcd-link.ts";
import { SimEtcd } from "./cluster/sim-etcd.ts";
import { STORE_PREFIX } from "./cluster/sim-member.ts";
import { clockOf } from "./fleet/process-clock.ts";
import { ProcessGate } from "./fleet/process-gate.ts";
import { passingTime } from "./passing-time.ts";

const LATENCY_MS = 5;

testEtcd("simulated etcd", async (t) => {
  const { time } = passingTime((end) => t.after(end));
  return { etcd: directEtcd(new SimEtcd(time)), pause: () => time.sleep(100) };
});

testEtcd("simulated etcd over a network", async (t) => {
  const { time, life } = passingTime((end) => t.after(end));
  return { etcd: linkTo(new SimEtcd(time), time, life), pause: () => time.sleep(100) };
});

let stores = 0;

conformance("simulated etcd", async (options) => {
  const { time, life, end } = passingTime(() => {});
  const store = await openEtcdStore({
    ...options,
    etcd: prefixed(linkTo(new SimEtcd(time), time, life), STORE_PREFIX),
    self: { holder: "a", name: "host-a" },
    callClock: clockOf(time, life, 0),
    random: () => 0.5,
    newId: () => `id-${++stores}`,
  });
  return { store, dispose: async () => end() };
});

function linkTo(etcd: SimEtcd, time: ReturnType<typeof passingTime>["time"], life: AbortSignal): EtcdLink {
  return new EtcdLink({
    ...{ etcd, time, life, random: randomOf(1), gate: new ProcessGate(time) },
    way: { cut: false, latencyMs: LATENCY_MS, lossShare: 0 },
  });
}
