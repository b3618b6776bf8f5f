import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { until } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import type { NodeEntry, PodEntry } from "../../state/entries.ts";
import { PlacementController } from "./controller.ts";
import { UnschedulablePods } from "./unschedulable-pods.ts";

/**
 * Tests each field that restricts where a pod may run, with two nodes of which the second is the only or the preferred
 * choice.
 */

const LIMIT = { timeout: 120_000 };
const zones = [node("a", { labels: { zone: "east" } }), node("b", { labels: { zone: "west" } })];
const WEB = { matchLabels: { app: "web" } };
const IN_WEST = { key: "zone", operator: "In", values: ["west"] };

test("node_selector: only nodes with the labels", LIMIT, async (t) => {
  await goesToB(t, zones, { podConfig: { nodeSelector: { zone: "west" } } });
  await staysOut(t, zones, { podConfig: { nodeSelector: { zone: "north" } } }, /node affinity|selector/);
});

test("affinity.node_affinity.required: only nodes that match one of the terms", LIMIT, async (t) => {
  await goesToB(t, zones, nodeAffinity({ required: { terms: [{ matchExpressions: [IN_WEST] }] } }));
  const byName = { key: "metadata.name", operator: "In", values: ["b"] };
  await goesToB(t, zones, nodeAffinity({ required: { terms: [{ matchFields: [byName] }] } }));
  const nowhere = { ...IN_WEST, values: ["north"] };
  await staysOut(
    t,
    zones,
    nodeAffinity({ required: { terms: [{ matchExpressions: [nowhere] }] } }),
    /affinity/,
  );
});

test(
  "affinity.node_affinity.preferred: prefers nodes that match, and falls back to others",
  LIMIT,
  async (t) => {
    const preferred = [{ weight: 100, preference: { matchExpressions: [IN_WEST] } }];
    await goesToB(t, zones, nodeAffinity({ preferred }));
    const [east] = zones;
    const { state } = await place(t, east === undefined ? [] : [east], [
      waiting(nodeAffinity({ preferred })),
    ]);
    assert.equal(state.pod("shop", "new")?.record.node, "a");
  },
);

test("affinity.pod_affinity.required: only nodes with the selected pods", LIMIT, async (t) => {
  const required = [{ labelSelector: WEB, topologyKey: "zone" }];
  await goesToB(t, zones, { podConfig: { affinity: { podAffinity: { required } } } }, [there("b")]);
  await staysOut(t, zones, { podConfig: { affinity: { podAffinity: { required } } } }, /affinity/);
});

test("affinity.pod_affinity.preferred: prefers nodes with the selected pods", LIMIT, async (t) => {
  const preferred = [{ weight: 100, term: { labelSelector: WEB, topologyKey: "hostname" } }];
  await goesToB(t, zones, { podConfig: { affinity: { podAffinity: { preferred } } } }, [there("b")]);
});

test("affinity.pod_anti_affinity.required: no nodes with the selected pods", LIMIT, async (t) => {
  const template = antiAffinity({ required: [{ labelSelector: WEB, topologyKey: "zone" }] });
  await goesToB(t, zones, template, [there("a")]);
  await staysOut(t, zones, template, /anti-affinity/, [there("a"), there("b")]);
});

test("affinity.pod_anti_affinity.preferred: prefers nodes without the selected pods", LIMIT, async (t) => {
  const preferred = [{ weight: 100, term: { labelSelector: WEB, topologyKey: "zone" } }];
  await goesToB(t, zones, antiAffinity({ preferred }), [there("a")]);
});

test("affinity terms: select pods in other namespaces", LIMIT, async (t) => {
  const term = { labelSelector: WEB, topologyKey: "zone", namespaces: ["other"] };
  const others = [there("a", "other"), there("b")];
  await goesToB(t, zones, antiAffinity({ required: [term] }), others);
});

test(
  "topology_spread_constraints: DoNotSchedule enforces the skew, ScheduleAnyway prefers it",
  LIMIT,
  async (t) => {
    for (const whenUnsatisfiable of ["DoNotSchedule", "ScheduleAnyway"]) {
      const constraint = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable, labelSelector: WEB };
      const template = { podConfig: { topologySpreadConstraints: [constraint] } };
      await goesToB(t, zones, template, [there("a"), there("a", "shop", "web-2")]);
    }
    const constraint = {
      maxSkew: 1,
      topologyKey: "zone",
      whenUnsatisfiable: "DoNotSchedule",
      labelSelector: WEB,
    };
    const spread = { podConfig: { topologySpreadConstraints: [constraint], nodeSelector: { disk: "ssd" } } };
    const withDisk = [
      node("a", { labels: { zone: "east", disk: "ssd" } }),
      node("b", { labels: { disk: "ssd" } }),
    ];
    await staysOut(t, [withDisk[1] as NodeEntry], spread, /topology|spread/);
  },
);

test("tolerations: pods without a matching toleration are not placed on tainted nodes", LIMIT, async (t) => {
  const full = [node("b", { conditions: [{ type: "DiskPressure", status: true }] })];
  await staysOut(t, full, {}, /disk-pressure/);
  const key = "node.kubernetes.io/disk-pressure";
  for (const toleration of [
    { key, operator: "Exists" },
    { key, operator: "Exists", effect: "NoSchedule" },
    { key, operator: "Equal", value: "" },
    { operator: "Exists" },
  ]) {
    await goesToB(t, full, { podConfig: { tolerations: [toleration] } });
  }
  const other = { podConfig: { tolerations: [{ key, operator: "Exists", effect: "NoExecute" }] } };
  await staysOut(t, full, other, /disk-pressure/);
});

test("runtime_class_name: only nodes whose agent configures the class", LIMIT, async (t) => {
  const nodes = [node("a", {}), node("b", { runtimeClasses: ["sandboxed"] })];
  await goesToB(t, nodes, { podConfig: { runtimeClassName: "sandboxed" } });
  await staysOut(t, nodes, { podConfig: { runtimeClassName: "other" } }, /runtime class/i);
});

test("host_network: a host port is free once per node and protocol", LIMIT, async (t) => {
  const template = onHost([{ containerPort: 8080, protocol: "TCP" }]);
  const nodes = [node("a", {}), node("b", {})];
  const taken = (on: string) => waiting(template, { name: `old-${on}`, node: on });
  await goesToB(t, nodes, template, [taken("a")]);
  await staysOut(t, nodes, template, /free port|port.*8080|host port/i, [taken("a"), taken("b")]);
  const udp = onHost([{ containerPort: 8080, protocol: "UDP" }]);
  await goesToB(t, [node("b", {})], udp, [taken("b")]);
  await goesToB(t, [node("b", {})], { ...template, podConfig: { hostNetwork: false } }, [taken("b")]);
});

test("resources.extended: only nodes with enough left", LIMIT, async (t) => {
  const gpus = { "vendor.example/gpu": "2" };
  const nodes = [node("a", {}), node("b", { allocatable: gpus })];
  const wants = (amount: string) => {
    const resources = { limits: { extended: { "vendor.example/gpu": amount } } };
    return { container: { name: "main", image: "app:v1", resources } };
  };
  await goesToB(t, nodes, wants("2"));
  await staysOut(t, nodes, wants("3"), /vendor\.example\/gpu/);
  await staysOut(t, nodes, wants("1"), /vendor\.example\/gpu/, [
    waiting(wants("2"), { name: "old", node: "b" }),
  ]);
});

test("resources.ephemeral_storage: only nodes with enough disk left", LIMIT, async (t) => {
  const nodes = [node("a", {}), node("b", { allocatable: { "ephemeral-storage": "10Gi" } })];
  const wants = (amount: string) => {
    const resources = { requests: { ephemeralStorage: amount } };
    return { container: { name: "main", image: "app:v1", resources } };
  };
  await goesToB(t, nodes, wants("10Gi"));
  await staysOut(t, nodes, wants("11Gi"), /ephemeral/);
});

test("init_containers: requires room for the largest init container", LIMIT, async (t) => {
  const init = (cpu: string) => ({
    initContainers: [{ name: "prepare", image: "app:v1", resources: { requests: { cpu } } }],
  });
  await goesToB(t, [node("a", { allocatable: { cpu: "1" } }), node("b", {})], init("3"));
  await staysOut(t, zones, init("5"), /insufficient cpu/);
});

type Template = Parameters<typeof PodTemplate.fromPartial>[0];

function antiAffinity(podAntiAffinity: object): Template {
  return { podConfig: { affinity: { podAntiAffinity } } };
}

function nodeAffinity(affinity: object): Template {
  return { podConfig: { affinity: { nodeAffinity: affinity } } };
}

function onHost(ports: { containerPort: number; protocol: string }[]): Template {
  return { container: { name: "main", image: "app:v1", ports }, podConfig: { hostNetwork: true } };
}

async function goesToB(
  t: TestContext,
  nodes: readonly NodeEntry[],
  template: Template,
  others: readonly PodEntry[] = [],
): Promise<void> {
  const { state, why } = await place(t, nodes, [...others, waiting(template)]);
  assert.equal(state.pod("shop", "new")?.record.node, "b", why());
}

async function staysOut(
  t: TestContext,
  nodes: readonly NodeEntry[],
  template: Template,
  reason: RegExp,
  others: readonly PodEntry[] = [],
): Promise<void> {
  const { state, why } = await place(t, nodes, [...others, waiting(template)]);
  assert.equal(state.pod("shop", "new")?.record.node, "");
  assert.match(why(), reason);
}

async function place(t: TestContext, nodes: readonly NodeEntry[], pods: readonly PodEntry[]) {
  const view = await aView(t, { nodes, pods });
  const unschedulable = new UnschedulablePods({ nowMs: () => view.clock.nowMs(), onChange: () => {} });
  const log = pino({ level: "silent" });
  const controller = new PlacementController({ ...view, log, profile: "pack", unschedulable });
  t.after(() => controller.close());
  const why = () => unschedulable.get("uid-new")?.summary ?? "";
  await until("it is placed, or there is a reason", () => {
    return why() !== "" || view.state.pod("shop", "new")?.record.node !== "";
  });
  return { state: view.state, why };
}

function waiting(template: Template, fields: { name?: string; node?: string } = {}): PodEntry {
  const pod = aPod({ name: "new", workload: "new", node: "", ...fields });
  const container = { name: "main", image: "app:v1" };
  return { ...pod, record: { ...pod.record, template: PodTemplate.fromPartial({ container, ...template }) } };
}

/**
 * Returns a bound pod that the tested rules select. It has the revision of the pod to place, because spread constraints
 * only count that.
 */
function there(on: string, namespace = "shop", name = "web-1"): PodEntry {
  return aPod({ name: `${name}-${on}`, namespace, node: on, labels: { app: "web" } });
}

interface NodeFields {
  readonly labels?: Readonly<Record<string, string>>;
  readonly allocatable?: Readonly<Record<string, string>>;
  readonly runtimeClasses?: readonly string[];
  readonly conditions?: readonly { readonly type: string; readonly status: boolean }[];
}

function node(name: string, { labels = {}, allocatable, runtimeClasses = [], conditions = [] }: NodeFields) {
  const made = aNode({ name, labels });
  const report = made.report?.report;
  if (report !== undefined) {
    report.allocatable = { cpu: "4", memory: "8Gi", pods: "110", ...allocatable };
    report.runtimeClasses = [...runtimeClasses];
    report.conditions = conditions.map((it) => ({ ...it, reason: "", message: "" }));
  }
  return made;
}
