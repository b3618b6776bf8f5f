import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { aPod, type PodFields } from "../../../test/support/entries.ts";
import type { PodSample } from "../../metrics/pod-metrics.ts";
import type { PushedValue } from "../../metrics/pushed-metrics.ts";
import type { Autoscaling, MetricTarget } from "../../model/autoscaling.ts";
import { readingsOf } from "./readings.ts";

const target = (name: string, type: MetricTarget["type"] = "AverageValue"): MetricTarget => {
  return { name, type, target: 1, text: "1" };
};
const sample = (fields: Partial<PodSample> = {}): PodSample => ({
  atMs: 0,
  cpuCores: 0.5,
  windowMs: 15_000,
  memoryBytes: 70,
  values: new Map([["queue", 7]]),
  problem: "",
  runningMs: 60_000,
  readyMs: 60_000,
  ...fields,
});
const RUNNING = { phase: PodPhase.RUNNING, ready: true };
const pod = (name: string, fields: PodFields = {}) => aPod({ name, status: RUNNING, ...fields });

interface Sources {
  readonly pods?: readonly ReturnType<typeof aPod>[];
  readonly samples?: Readonly<Record<string, PodSample>>;
  /** Pushed values, by `WORKLOAD/POD`. */
  readonly pushed?: Readonly<Record<string, number>>;
}

function read(metric: MetricTarget, { pods = [pod("a")], samples = {}, pushed = {} }: Sources) {
  const policy: Autoscaling = { minReplicas: 1, maxReplicas: 9, stabilizationMs: 0, metrics: [metric] };
  const [reading] = readingsOf(policy, {
    namespace: "shop",
    name: "web",
    pods,
    isReady: ({ status }) => status?.ready === true,
    sampleOf: (uid) => samples[uid],
    pushed: ({ workload, pod: of }) => {
      const value = pushed[`${workload}/${of}`];
      return value === undefined ? undefined : ({ value } as PushedValue);
    },
  });
  assert.ok(reading);
  return reading;
}

const valuesOf = (metric: MetricTarget, sources: Sources) =>
  read(metric, sources).pods.map(({ value }) => value);

test("reads CPU and memory from samples, never from pushed metrics", () => {
  const sources = { samples: { "uid-a": sample() }, pushed: { "/a": 9 } };
  assert.deepEqual(valuesOf(target("cpu"), sources), [0.5]);
  assert.deepEqual(valuesOf(target("memory"), sources), [70]);
});

test("prefers a pushed value of a pod to the value that the pod reports", () => {
  const samples = { "uid-a": sample(), "uid-b": sample() };
  const pods = [pod("a"), pod("b"), pod("c")];
  assert.deepEqual(valuesOf(target("queue"), { pods, samples, pushed: { "/a": 9 } }), [9, 7, undefined]);
});

test("prefers a total that was pushed for the workload to one that was pushed for the namespace", () => {
  assert.equal(read(target("queue"), { pushed: { "web/": 5, "/": 6 } }).total, 5);
  assert.equal(read(target("queue"), { pushed: { "/": 6 } }).total, 6);
  assert.equal(read(target("queue"), { pushed: { "other/": 6 } }).total, undefined);
});

test("counts pods that have yet to start, but no stopping or ended pods", () => {
  const pods = [
    pod("running"),
    pod("stopping", { stopping: true }),
    pod("failed", { status: { phase: PodPhase.FAILED } }),
    pod("ended", { status: { phase: PodPhase.SUCCEEDED } }),
    pod("pending", { status: { phase: PodPhase.PENDING } }),
    aPod({ name: "unplaced", node: "" }),
  ];
  assert.deepEqual(
    read(target("cpu"), { pods }).pods.map(({ name, starting }) => [name, starting]),
    [
      ["running", false],
      ["pending", true],
      ["unplaced", true],
    ],
  );
});

test("ignores CPU samples of a pod's first minutes unless it was ready for the whole sample", () => {
  for (const [fields, ready, starting] of [
    [{}, true, false],
    [{ readyMs: 14_999 }, true, true],
    [{ readyMs: 15_000 }, true, false],
    [{}, false, true],
    [{ runningMs: 300_000, readyMs: 0 }, false, false],
    [{ runningMs: 300_000, readyMs: 1 }, true, false],
  ] as const) {
    const pods = [pod("a", { status: { ...RUNNING, ready } })];
    const samples = { "uid-a": sample(fields) };
    const what = JSON.stringify([fields, ready]);
    assert.equal(read(target("cpu"), { pods, samples }).pods[0]?.starting, starting, what);
    assert.equal(read(target("memory"), { pods, samples }).pods[0]?.starting, false, what);
  }
});

test("explains a missing value of a pod: no metrics port, or the error of its node", () => {
  const problemOf = (source: Sources) => read(target("queue"), source).pods[0]?.problem;
  assert.match(
    problemOf({}) ?? "",
    /no value was pushed, .* without the annotation forage.dev\/metrics-port/,
  );
  const asked = pod("a");
  assert.ok(asked.record.template);
  asked.record.template.podConfig = PodConfig.fromPartial({
    annotations: { "forage.dev/metrics-port": "80" },
  });
  const samples = { "uid-a": sample({ values: new Map(), problem: "HTTP 503" }) };
  assert.equal(problemOf({ pods: [asked], samples }), "HTTP 503");
  assert.equal(problemOf({ pods: [asked], samples, pushed: { "/a": 1 } }), undefined);
  assert.equal(read(target("cpu"), {}).pods[0]?.problem, undefined);
});

test("sums the requests of the pod's containers, using limits where requests are missing", () => {
  const made = pod("a");
  const template = made.record.template;
  assert.ok(template?.container);
  const list = (cpu: string) => ({ cpu, memory: "", ephemeralStorage: "", extended: { "v.example/x": "2" } });
  template.container.resources = { requests: list("250m"), limits: undefined };
  template.sidecars = [{ ...template.container, resources: { requests: undefined, limits: list("1") } }];
  const requestOf = (name: string) => read(target(name, "Utilization"), { pods: [made] }).pods[0]?.request;
  assert.deepEqual([requestOf("cpu"), requestOf("memory"), requestOf("v.example/x")], [1.25, 0, 4]);
  assert.equal(read(target("cpu"), { pods: [made] }).pods[0]?.request, undefined);
});
