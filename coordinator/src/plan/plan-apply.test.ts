import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { PlannedResource, UpdateRolloutRequest } from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { aNode } from "../../test/support/entries.ts";
import { aContainerService, aJob, aRequest, aRoute, aService } from "../../test/support/requests.ts";
import { settled } from "../../test/support/until.ts";
import { aView } from "../../test/support/view.ts";
import { applyResources } from "../api/forage/apply.ts";
import { type UpdateRolloutOptions, updateRollout } from "../api/operator/update-rollout.ts";
import { startControl } from "../control/control.ts";
import { isTerminal } from "../control/rollout/progress.ts";
import type { ReportedStep } from "../control/step-sink.ts";
import { parseIpRange } from "../ip/ip-range.ts";
import { recordStatuses } from "../link/reports.ts";
import { MetricsCollector } from "../metrics/metrics-collector.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry } from "../state/entries.ts";
import { planApply, planRollout } from "./plan-apply.ts";
import { optimisticStatus } from "./simulated-nodes.ts";

const LABELS = { app: "shop" };
const WEB = { namespace: "shop", kind: "container_service", name: "web" } as const;
const ADMIN = { type: "user", name: "admin", grants: [{ role: "admin", namespaces: "*" }] } as const;
const V1 = "registry.example/team/app:v1";
const V2 = "registry.example/team/app:v2";

/**
 * A plan promises that the coordinator's controllers, after a real apply, take exactly the planned
 * steps in the same order, and put the pods on the same nodes.
 */
for (const [what, start, change] of [
  ["a first deployment", [], [web(5, V1)]],
  ["a rolling update", [web(5, V1)], [web(5, V2)]],
  ["an update of one pod", [web(1, V1)], [web(1, V2)]],
  ["more and newer pods", [web(2, V1)], [web(6, V2)]],
  ["a smaller service", [web(5, V1)], [web(2, V1)]],
  ["none at all", [web(3, V1)], [web(0, V1)]],
  ["Recreate", [web(3, V1)], [web(3, V2, { updateStrategy: { type: "Recreate" } })]],
  [
    "no surge",
    [web(4, V1)],
    [web(4, V2, { updateStrategy: { rollingUpdate: { maxSurge: "0", maxUnavailable: "1" } } })],
  ],
  ["more than there is room for", [], [web(30, V1)]],
  ["a removal", [web(3, V1)], []],
  ["one service in place of another", [web(3, V1)], [aContainerService("other")]],
  ["a job", [], [aJob("import", { jobConfig: { completions: 5, parallelism: 2 } })]],
  ["services and a job together", [web(2, V1)], [web(2, V2), aJob("import"), aContainerService("other")]],
] as const) {
  test(`the plan equals what an apply does: ${what}`, async (t) => {
    const fleet = await aFleet(t);
    if (start.length > 0) await fleet.apply("a1", start);
    const plan = await fleet.plan(change);
    const before = fleet.pods();
    const done = await fleet.apply("a2", change);
    assert.deepEqual(doneLines(done, before), plannedLines(plan.resources, before));
    assert.deepEqual(nodesOf(fleet.pods(), before), placed(plan.resources));
    assert.ok(done.length > 0, "nothing was compared");
  });
}

for (const [what, action, image] of [
  ["an undo after a change of the size", { $case: "undo", value: { toRevision: 1 } }, V1],
  ["a restart", { $case: "restart", value: {} }, V2],
] as const) {
  test(`the plan equals what an apply does: ${what}`, async (t) => {
    const fleet = await aFleet(t);
    await fleet.apply("a1", [web(2, V1)]);
    await fleet.apply("a2", [web(2, V2)]);
    await fleet.apply("a3", [web(6, V2)]);
    const { resources } = await fleet.planUpdate(action);
    const before = fleet.pods();
    const done = await fleet.doUpdate(action);
    assert.deepEqual(doneLines(done, before), plannedLines(resources, before));
    const changes = resources.flatMap((resource) => resource.changes.map(({ path, after }) => [path, after]));
    const path = "container_service.container.image";
    assert.deepEqual(changes, image === V1 ? [[path, V1]] : [], "the size stays as it is");
    assert.equal(fleet.pods().size, 6);
    assert.match(resources[0]?.notes[0] ?? "", /^(undone to revision 1|restarted)$/);
    const details = resources.flatMap(({ steps }) => steps.map(({ detail }) => detail));
    assert.ok(details.includes("state succeeded"), `states are words: ${details}`);
  });
}

test("changes nothing and takes no step", async (t) => {
  const fleet = await aFleet(t);
  await fleet.apply("a1", [web(3, V1)]);
  const before = fleet.store.revision;
  await fleet.plan([web(5, V2)]);
  assert.equal(fleet.store.revision, before);
});

test("ends the steps of a cron job without a run, and notes the next run", async (t) => {
  const fleet = await aFleet(t);
  const value = { schedule: "* * * * *", container: { name: "main", image: V1 } };
  const cron = ForageResource.fromPartial({ name: "tick", spec: { $case: "cronJob", value } });
  const waiting = aJob("wait", { container: { name: "main", image: V1 } });
  const { resources } = await fleet.plan([cron, waiting, web(30, V1)]);
  const [planned] = resources;
  assert.equal(planned?.name, "tick");
  assert.ok(!planned?.steps.some(({ step }) => step === "start-run"), JSON.stringify(planned?.steps));
  assert.match(planned?.notes.join() ?? "", /^next run at /);
});

test("notes a missing object to which a pod or a route refers", async (t) => {
  const fleet = await aFleet(t);
  const ref = { secretName: "db", secretKey: "password" };
  const container = {
    name: "main",
    image: V1,
    env: [{ name: "PASSWORD", valueSource: { $case: "secretRef" as const, value: ref } }],
  };
  const volumes = [
    {
      name: "c",
      mountPath: "/c",
      source: { $case: "configMap" as const, value: { configMapName: "settings" } },
    },
  ];
  const podConfig = { priorityClassName: "urgent" };
  const service = aContainerService("web", { scaling: { replicas: 1 }, container, volumes, podConfig });
  const job = aJob("import", { container: { ...container, name: "main" } });
  const tls = aRoute("site", { tls: { certificateRef: "site-tls" }, hostnames: ["site.example"] });
  const { resources } = await fleet.plan([service, job, aService("web-svc", "web"), tls]);
  const notes = new Map(resources.map((it) => [it.name, it.notes.join("\n")]));
  assert.match(notes.get("web") ?? "", /secret "db" does not exist in namespace shop: pods wait/);
  assert.match(notes.get("web") ?? "", /config map "settings" does not exist/);
  assert.doesNotMatch(notes.get("web") ?? "", /urgent/, "pods start without their priority class");
  assert.match(notes.get("import") ?? "", /secret "db" does not exist/);
  assert.match(notes.get("site") ?? "", /secret "site-tls" does not exist in namespace shop: no TLS/);
});

test("ends a plan that takes too long, and notes it", async (t) => {
  const fleet = await aFleet(t);
  const [job] = (await fleet.plan([aJob("long", { jobConfig: { completions: 300, parallelism: 1 } })]))
    .resources;
  assert.ok((job?.steps.length ?? 0) >= 100);
  assert.match(job?.notes[0] ?? "", /^further steps follow; after these: \d+\/300 completed/);
});

function web(replicas: number, image: string, more: object = {}): ForageResource {
  const resources = { requests: { cpu: "500m", memory: "64Mi" }, limits: undefined };
  const container = { name: "main", image, resources };
  return aContainerService("web", { scaling: { replicas }, container, ...more });
}

/**
 * Starts two nodes for eight pods each, on which everything succeeds, and the controllers of a
 * coordinator.
 */
async function aFleet(t: TestContext) {
  const { store, state, clock } = await aView(t, { nodes: [bigNode("n1"), bigNode("n2")] });
  const done: ReportedStep[] = [];
  let names = 0;
  const randomName = (length: number): string => String(names++).padStart(length, "0");
  const limits = { deadlineMs: 600_000, placementMs: 20_000, stableMs: 1_000 };
  const ip = parseIpRange("10.96.0.0/16");
  assert.ok(ip);
  const addresses = { virtualIps: [ip], loadBalancerIps: [], nodePorts: { first: 30_000, last: 32_767 } };
  const fixed = { randomName, profile: "pack", limits, addresses } as const;
  const metrics = new MetricsCollector({ state, clock, intervalMs: 15_000 });
  const control = startControl({
    ...fixed,
    store,
    state,
    clock,
    metrics,
    log: pino({ level: "silent" }),
    steps: { report: (step) => done.push(step) },
    events: { record: () => {} },
    readyEndpoints: () => 0,
  });
  t.after(async () => {
    await control.close();
    metrics.close();
  });
  const report = async (): Promise<boolean> => {
    let said = false;
    for (const { name } of state.nodes()) {
      const statuses = state.podsOnNode(name).flatMap((pod) => optimisticStatus(pod, true) ?? []);
      if (statuses.length === 0) continue;
      said = true;
      await recordStatuses(name, statuses, { store, state, clock, log: pino({ level: "silent" }) });
    }
    return said;
  };
  const apply = async (applyId: string, resources: readonly ForageResource[]): Promise<Step[]> => {
    done.length = 0;
    const request = aRequest(applyId, resources, LABELS);
    return finish((await applyResources(request, { store, state, clock, randomName })).rolloutId);
  };
  /**
   * Returns the steps that were taken until the rollout had ended and the controllers were idle.
   */
  const finish = async (rolloutId: string): Promise<Step[]> => {
    for (let looks = 0; looks < 4_000; looks++) {
      await quiet(state);
      if (await report()) continue;
      const progress = control.rollouts.progress(rolloutId) ?? [];
      if (progress.every(({ status }) => isTerminal(status))) return [...done];
      clock.advance(100);
    }
    return assert.fail("the rollout did not end");
  };
  const planOptions = () => ({
    ...{ store, state, nowMs: clock.nowMs() },
    ...{ control: fixed, apply: { randomName }, turn: settled },
  });
  const plan = (resources: readonly ForageResource[]) =>
    planApply(aRequest("", resources, LABELS), planOptions());
  const update = (
    action: NonNullable<UpdateRolloutRequest["action"]>,
    on: Pick<UpdateRolloutOptions, "store" | "state" | "clock"> = { store, state, clock },
  ) =>
    updateRollout({ ...WEB, action }, ADMIN, {
      ...{ ...on, randomName, events: { record: () => {} } },
      namespaceRules: { checkResource: () => {}, checkUndo: () => {}, inTurn: (_, task) => task() },
    });
  const planUpdate = (action: NonNullable<UpdateRolloutRequest["action"]>) =>
    planRollout(WEB, (copy) => update(action, copy), planOptions());
  const doUpdate = async (action: NonNullable<UpdateRolloutRequest["action"]>): Promise<Step[]> => {
    done.length = 0;
    return finish((await update(action)).rolloutId);
  };
  const pods = (): Pods => new Map(state.pods().map(({ record }) => [record.name, record.node]));
  return { store, apply, plan, planUpdate, doUpdate, pods };
}

/** The nodes of pods, by name. */
type Pods = ReadonlyMap<string, string>;
type Step = Readonly<Record<string, unknown>>;

async function quiet(state: ClusterView): Promise<void> {
  for (let seen = -1, turns = 0; turns < 3; turns = state.revision === seen ? turns + 1 : 0) {
    seen = state.revision;
    await settled();
  }
}

/**
 * Returns the steps by workload, because workloads do not wait for one another. Names of pods
 * created in the meantime can't be predicted, and are omitted.
 */
function doneLines(steps: readonly Step[], before: Pods): string[] {
  const lines = steps.map(({ workload, step, pod, why, ...rest }) => {
    const detail = Object.entries(rest)
      .filter(([name, value]) => value !== undefined && value !== "" && name !== "count")
      .map(([name, value]) => ` ${name} ${value}`);
    const count = String(step).startsWith("create-pod") ? ` ${rest.count ?? 1}` : "";
    return `${workload} ${step}${count}${podText(pod, before)}${detail.join(",")}: ${why ?? ""}`;
  });
  return byWorkload(lines);
}

function plannedLines(resources: readonly PlannedResource[], before: Pods): string[] {
  const lines = resources.flatMap(({ kind, name, steps }) =>
    steps.map(({ step, count, pod, why, detail }) => {
      const shown = detail.replace(/^count \d+(, )?/, "");
      const about = `${step}${count > 0 ? ` ${count}` : ""}${podText(pod, before)}`;
      return `shop/${kind}/${name} ${about}${shown === "" ? "" : ` ${shown}`}: ${why}`;
    }),
  );
  return byWorkload(lines);
}

function podText(pod: unknown, before: Pods): string {
  if (pod === undefined || pod === "") return "";
  return before.has(String(pod)) ? ` ${pod}` : " a new pod";
}

function byWorkload(lines: readonly string[]): string[] {
  const workloadOf = (line: string): string => line.slice(0, line.indexOf(" "));
  return [...lines].sort((a, b) => workloadOf(a).localeCompare(workloadOf(b)));
}

function nodesOf(pods: Pods, before: Pods): Record<string, number> {
  const fresh = [...pods].filter(([name]) => !before.has(name));
  return Object.fromEntries(
    Object.entries(Object.groupBy(fresh, ([, node]) => node)).map(([node, its]) => [node, its?.length ?? 0]),
  );
}

function placed(resources: readonly PlannedResource[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { node, pods } of resources.flatMap(({ steps }) => steps.flatMap((step) => step.placements)))
    sums[node] = (sums[node] ?? 0) + pods;
  return sums;
}

function bigNode(name: string): NodeEntry {
  const node = aNode({ name });
  const allocatable = { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "10Gi" };
  const report = node.report?.report;
  assert.ok(node.report && report);
  return { ...node, report: { ...node.report, report: { ...report, allocatable } } };
}
