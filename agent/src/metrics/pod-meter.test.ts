import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { PodMetricsRequests, type PodMetricsSample } from "@forage/proto/forage/agent/v1/agent";
import type { ContainerStatus, PodStatus } from "../pods/decide/pod-status.ts";
import { PodMeter, type SampleSink } from "./pod-meter.ts";

/** A meter over pods whose usage the test sets. */
class Host {
  readonly clock = new VirtualClock();
  readonly pods = new Map<string, PodStatus>();
  /** The CPU time used so far, by container. */
  readonly cpuNanos = new Map<string, number>();
  readonly scraped: string[] = [];
  readonly samples: PodMetricsSample[] = [];
  /** The pod's metrics. Undefined: the pod doesn't respond. */
  text: string | undefined = "";
  reads = 0;
  readonly sink: SampleSink = {
    send: async ({ value }) => {
      this.samples.push(...value.pods);
    },
  };
  readonly meter = new PodMeter({
    clock: this.clock,
    pods: { statusOf: (uid) => this.pods.get(uid), statuses: () => [...this.pods.values()] },
    usage: async (id) => {
      this.reads++;
      const cpuNanos = this.cpuNanos.get(id);
      return cpuNanos === undefined
        ? undefined
        : { cpuNanos, memoryBytes: 50, workingSetBytes: 40, oomKills: 0 };
    },
    scrape: async ({ address, port, path, scheme }, signal) => {
      this.scraped.push(`${scheme}://${address}:${port}${path}`);
      const { text } = this;
      if (text !== undefined) return text;
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    },
  });

  ask(...pods: NonNullable<Parameters<typeof PodMetricsRequests.fromPartial>[0]["pods"]>): void {
    this.meter.ask(PodMetricsRequests.fromPartial({ pods, intervalMs: 15_000 }), this.sink);
  }

  run(uid: string, ...containers: readonly string[]): void {
    const startedAtMs = this.clock.nowMs();
    this.pods.set(uid, aStatus(uid, startedAtMs, containers));
    for (const id of containers) this.cpuNanos.set(id, 0);
  }

  /** Returns the pods of the samples since the last call. */
  taken(): string[] {
    return this.samples
      .splice(0)
      .map(({ podUid }) => podUid)
      .sort();
  }

  burn(id: string, seconds: number): void {
    this.cpuNanos.set(id, (this.cpuNanos.get(id) ?? 0) + seconds * 1e9);
  }
}

const USAGE = { podUid: "p1", usage: true };
const SCRAPE = { port: 9090, path: "/metrics", scheme: "http", names: ["queue", "done_total"] };

test("does nothing without requests", async () => {
  const host = new Host();
  host.run("p1", "a");
  await host.clock.run(3_600_000);
  assert.deepEqual([host.clock.pending, host.reads, host.samples.length], [0, 0, 0]);
});

test("cpu is the mean of all containers since the last measurement, memory the current use", async () => {
  const host = new Host();
  host.run("p1", "a", "b");
  await host.clock.run(1_000);
  host.ask(USAGE);
  await host.clock.run(0);
  assert.deepEqual(
    host.samples.map(({ cpuNanoCores, memoryBytes, runningMs, readyMs }) => [
      cpuNanoCores,
      memoryBytes,
      runningMs,
      readyMs,
    ]),
    [[undefined, 80n, 1_000n, 1_000n]],
  );
  host.burn("a", 3);
  host.burn("b", 4.5);
  await host.clock.run(15_000);
  const { cpuNanoCores, windowMs } = host.samples.at(-1) ?? {};
  assert.deepEqual([cpuNanoCores, windowMs], [500_000_000n, 15_000n]);
});

test("measures every pod on request, and omits at most three similar samples in a row", async () => {
  const host = new Host();
  host.run("p1", "a");
  host.run("p2", "b");
  await host.clock.run(1_000);
  host.meter.ask(PodMetricsRequests.fromPartial({ usageOfAllPods: true, pods: [USAGE] }), host.sink);
  await host.clock.run(0);
  assert.deepEqual(host.taken(), ["p1", "p2"]);
  await host.clock.run(15_000);
  assert.deepEqual(host.taken(), ["p1", "p2"], "the CPU is known from the second measurement on");
  await host.clock.run(45_000);
  assert.deepEqual(host.taken(), ["p1", "p1", "p1"], "a requested sample is always sent");
  await host.clock.run(15_000);
  assert.deepEqual(host.taken(), ["p1", "p2"], "the fourth is sent as it is");
  host.burn("b", 1.5);
  host.run("p3", "c");
  await host.clock.run(15_000);
  assert.deepEqual(host.taken(), ["p1", "p2", "p3"]);
  host.pods.delete("p2");
  await host.clock.run(15_000);
  assert.deepEqual(host.taken(), ["p1", "p3"]);
  host.ask();
  await host.clock.run(60_000);
  assert.deepEqual([host.taken(), host.clock.pending], [[], 0]);
});

test("reports that a pod isn't ready, and omits a pod that doesn't run", async () => {
  const host = new Host();
  host.run("p1", "a");
  host.pods.set("p1", { ...aStatus("p1", host.clock.nowMs(), ["a"]), ready: false });
  host.run("p2", "b");
  host.pods.set("p2", { ...aStatus("p2", host.clock.nowMs(), ["b"]), phase: "PENDING" });
  await host.clock.run(1_000);
  host.ask(USAGE, { podUid: "p2", usage: true }, { podUid: "unknown", usage: true });
  await host.clock.run(0);
  assert.deepEqual(
    host.samples.map(({ podUid, runningMs, readyMs }) => [podUid, runningMs, readyMs]),
    [["p1", 1_000n, 0n]],
  );
});

for (const jumpMs of [-6 * 3_600_000, 6 * 3_600_000]) {
  test(`a pod's ages grow steadily if the clock is set by ${jumpMs / 3_600_000} h`, async () => {
    const host = new Host();
    host.run("p1", "a");
    await host.clock.run(60_000);
    host.ask(USAGE);
    await host.clock.run(0);
    host.clock.jumpWall(jumpMs);
    await host.clock.run(15_000);
    const { runningMs, readyMs } = host.samples.at(-1) ?? {};
    assert.deepEqual([runningMs, readyMs], [75_000n, 75_000n]);
  });
}

test("the age of a pod that started before the clock was set back is the time since its first measurement", async () => {
  const host = new Host();
  host.run("p1", "a");
  host.clock.jumpWall(-6 * 3_600_000);
  host.ask(USAGE);
  await host.clock.run(15_000);
  assert.deepEqual(
    host.samples.map(({ readyMs }) => readyMs),
    [1n, 15_000n],
  );
});

test("a pod's usage is unknown if one of its containers can't be read", async () => {
  const host = new Host();
  host.run("p1", "a", "b");
  host.ask(USAGE);
  await host.clock.run(0);
  host.cpuNanos.delete("b");
  await host.clock.run(15_000);
  const { cpuNanoCores, memoryBytes } = host.samples.at(-1) ?? {};
  assert.deepEqual([cpuNanoCores, memoryBytes], [undefined, undefined]);
});

test("scrapes requested metrics from the pod's own address, and reports counters as rates", async () => {
  const host = new Host();
  host.run("p1", "a");
  host.text = "queue 7\ndone_total 30\nother 1\n";
  host.ask({ podUid: "p1", usage: false, scrape: SCRAPE });
  await host.clock.run(0);
  assert.deepEqual(host.scraped, ["http://10.1.0.2:9090/metrics"]);
  assert.equal(host.reads, 0, "its use wasn't requested");
  assert.deepEqual(host.samples.at(-1)?.values, { queue: 7 });
  host.text = "queue 8\ndone_total 60\n";
  await host.clock.run(15_000);
  assert.deepEqual(host.samples.at(-1)?.values, { queue: 8, done_total: 2 });
});

test("a pod that doesn't respond times out after 5 s, and other pods are measured", async () => {
  const host = new Host();
  host.run("p1", "a");
  host.run("p2", "b");
  host.text = undefined;
  host.ask({ podUid: "p1", usage: true, scrape: SCRAPE }, { podUid: "p2", usage: true });
  await host.clock.run(5_000);
  assert.deepEqual(
    host.samples.map(({ podUid, problem }) => [podUid, problem]),
    [
      ["p2", ""],
      ["p1", "http://10.1.0.2:9090/metrics: no answer within 5 s"],
    ],
  );
  assert.equal(host.samples[1]?.memoryBytes, 40n);
});

test("a new request replaces the previous one with its own interval, and keeps earlier readings", async () => {
  const host = new Host();
  host.run("p1", "a");
  host.ask(USAGE);
  await host.clock.run(0);
  host.burn("a", 15);
  host.run("p2", "b");
  host.ask(USAGE, { podUid: "p2", usage: true });
  await host.clock.run(15_000);
  assert.deepEqual(
    host.samples.slice(1).map(({ podUid, cpuNanoCores }) => [podUid, cpuNanoCores]),
    [
      ["p1", 1_000_000_000n],
      ["p2", undefined],
    ],
  );
});

test("stops when the requests or the connection end, or when it is closed", async () => {
  const host = new Host();
  host.run("p1", "a");
  for (const end of [() => host.ask(), () => host.meter.ended(host.sink), () => void host.meter.close()]) {
    host.ask(USAGE);
    await host.clock.run(15_000);
    assert.equal(host.clock.pending, 1);
    end();
    const { reads } = host;
    await host.clock.run(60_000);
    assert.deepEqual([host.clock.pending, host.reads], [0, reads]);
  }
  await host.meter.close();
});

test("the end of an older connection changes nothing", async () => {
  const host = new Host();
  host.run("p1", "a");
  host.ask(USAGE);
  host.meter.ended({ send: async () => undefined });
  await host.clock.run(15_000);
  assert.equal(host.samples.length, 2);
  await host.meter.close();
});

test("takes no samples while samples can't be sent", async () => {
  const host = new Host();
  host.run("p1", "a");
  const sent = Promise.withResolvers<void>();
  host.meter.ask(PodMetricsRequests.fromPartial({ pods: [USAGE], intervalMs: 1_000 }), {
    send: () => sent.promise,
  });
  await host.clock.run(60_000);
  assert.equal(host.reads, 1);
  sent.resolve();
  await host.clock.run(1_000);
  assert.equal(host.reads, 2);
  await host.meter.close();
});

function aStatus(uid: string, startedAtMs: number, containers: readonly string[]): PodStatus {
  return {
    uid,
    namespace: "shop",
    name: uid,
    specHash: "",
    phase: "RUNNING",
    ready: true,
    reason: "",
    message: "",
    podIp: "10.1.0.2",
    podIps: ["10.1.0.2"],
    containers: containers.map((id): ContainerStatus => {
      const state = { type: "running", startedAtMs } as const;
      return {
        name: id,
        image: "",
        containerId: id,
        state,
        terminations: [],
        restarts: 0,
        ready: true,
        init: false,
        started: true,
      };
    }),
    hostPorts: [],
    startedAtMs,
    readyAtMs: startedAtMs,
  };
}

test("a pod that is requested again is measured from then on", async () => {
  const host = new Host();
  for (const uid of ["p1", "p2"]) host.run(uid, uid);
  host.ask({ podUid: "p1", usage: true }, { podUid: "p2", usage: true });
  await host.clock.run(20_000);
  host.ask({ podUid: "p2", usage: true });
  await host.clock.run(60_000);
  host.samples.length = 0;
  host.ask({ podUid: "p1", usage: true }, { podUid: "p2", usage: true });
  await host.clock.run(15_000);
  const [first] = host.samples.filter(({ podUid }) => podUid === "p1");
  assert.deepEqual([first?.podUid, first?.cpuNanoCores], ["p1", undefined]);
});

test("measures at most 1,000 pods, however many are requested", async () => {
  const host = new Host();
  const uids = Array.from({ length: 1_001 }, (_, index) => `p${index}`);
  for (const uid of uids) host.run(uid, uid);
  host.ask(...uids.map((podUid) => ({ podUid, usage: true })));
  await host.clock.run(1_000);
  assert.equal(host.samples.length, 1_000);
});
