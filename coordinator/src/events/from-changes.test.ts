import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ContainerStatus, PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { aNode, aPod, aServiceEntry, aWorkloadEntry, type PodFields } from "../../test/support/entries.ts";
import type { NodeEntry } from "../state/entries.ts";
import { eventsOf } from "./from-changes.ts";

type Status = NonNullable<PodFields["status"]>;
type Partly<T> = { readonly [Name in keyof T]?: unknown };

const waiting = (reason: string, message = ""): Partly<ContainerStatus> => ({
  state: { $case: "waiting", value: { reason, message } },
});
const RUNNING: Partly<ContainerStatus> = { state: { $case: "running", value: {} }, containerId: "c1" };
const end = (second: number, fields: object = {}) => ({
  exitCode: 1,
  reason: "Error",
  message: "",
  finishedAt: { seconds: BigInt(second), nanos: 0 },
  ...fields,
});

const podCases: readonly (readonly [
  what: string,
  before: PodFields | undefined,
  after: PodFields | undefined,
  events: readonly string[],
])[] = [
  ["a pod that has no node yet", undefined, { node: "" }, []],
  ["a pod that gets a node", { node: "" }, { node: "n1" }, ["Normal Scheduled: placed on node n1"]],
  ["nothing new", { status: { ready: true } }, { status: { ready: true } }, []],
  ["a pod that stops", {}, { stopping: true }, ["Normal Stopping: stops: its workload no longer needs it"]],
  ["a pod that is gone", { stopping: true }, undefined, ["Normal Stopped: it was removed from node n1"]],
  ["a pod that was never anywhere", { stopping: true, node: "" }, undefined, []],
  ["a pod whose node was forgotten", {}, undefined, ["Warning Lost: was lost with node n1"]],
  [
    "a pull",
    withContainer(waiting("ContainerCreating")),
    withContainer(waiting("ImagePull", "pulling app:v1: 30 %")),
    ["Normal Pulling: container main: pulling app:v1"],
  ],
  [
    "progress of a pull",
    withContainer(waiting("ImagePull", "30 %")),
    withContainer(waiting("ImagePull", "40 %")),
    [],
  ],
  [
    "the end of a pull and the start",
    withContainer(waiting("ImagePull")),
    withContainer(RUNNING),
    ["Normal Pulled: container main: app:v1 is on the node", "Normal Started: container main has started"],
  ],
  [
    "a pull that fails",
    withContainer(waiting("ImagePull")),
    withContainer(waiting("ErrImageNotFound", "no such tag")),
    ["Warning ErrImageNotFound: container main: no such tag"],
  ],
  [
    "a crash",
    withContainer(RUNNING),
    withContainer({
      ...waiting("CrashLoopBackOff", "starts again 10 s after its end"),
      lastTermination: end(5, { exitCode: 3, message: "no\nbeans\n" }),
      restartCount: 1,
    }),
    [
      "Warning ContainerFailed: container main exited with code 3 (Error); last lines: no\nbeans",
      "Warning CrashLoopBackOff: container main: starts again 10 s after its end",
    ],
  ],
  [
    "a start after a crash",
    withContainer({ ...waiting("CrashLoopBackOff"), lastTermination: end(5), restartCount: 1 }),
    withContainer({ ...RUNNING, lastTermination: end(5), restartCount: 1 }),
    ["Normal Restarted: container main has restarted after it exited with code 1 (Error)"],
  ],
  [
    "two crashes between two words",
    withContainer({ ...RUNNING, lastTermination: end(1), terminations: [end(1)], restartCount: 1 }),
    withContainer({
      ...RUNNING,
      containerId: "c3",
      lastTermination: end(3, { reason: "OOMKilled", signal: 9 }),
      terminations: [end(3, { reason: "OOMKilled", signal: 9 }), end(2), end(1)],
      restartCount: 3,
    }),
    [
      "Warning ContainerFailed: container main exited with code 1 (Error)",
      "Warning OOMKilled: container main was killed by signal 9 (OOMKilled)",
      "Normal Restarted: container main has restarted after it was killed by signal 9 (OOMKilled)",
    ],
  ],
  [
    "a container that has done its work",
    withContainer(RUNNING),
    withContainer({ state: { $case: "terminated", value: end(5, { exitCode: 0, reason: "Completed" }) } }),
    ["Normal ContainerCompleted: container main exited with code 0"],
  ],
  [
    "a missing secret",
    withContainer(waiting("ContainerCreating")),
    withContainer(waiting("CreateContainerConfigError", 'secret "db" is missing')),
    ['Warning CreateContainerConfigError: container main: secret "db" is missing'],
  ],
  [
    "ends while it stops",
    { ...withContainer(RUNNING), stopping: true },
    { ...withContainer({ state: { $case: "terminated", value: end(5) } }), stopping: true },
    [],
  ],
  [
    "readiness",
    { status: {} },
    { status: { ready: true } },
    ["Normal Ready: all of its containers are ready"],
  ],
  [
    "a probe that fails",
    { status: { ready: true } },
    { status: { reason: "ContainersNotReady", message: "container main: readiness probe fails: HTTP 500" } },
    ["Warning ProbeFailed: no longer ready: container main: readiness probe fails: HTTP 500"],
  ],
  [
    "a probe that has failed as often as it allows for",
    { status: {} },
    { status: { reason: "ContainersNotReady", message: "container main: readiness probe fails: refused" } },
    ["Warning ProbeFailed: container main: readiness probe fails: refused"],
  ],
  [
    "a probe that has not passed yet",
    { status: {} },
    {
      status: {
        reason: "ContainersNotReady",
        message: "container main: startup probe has not passed yet: connect ECONNREFUSED 10.0.0.2:80",
      },
    },
    [],
  ],
  [
    "a probe that was not asked yet",
    { status: {} },
    {
      status: { reason: "ContainersNotReady", message: "container main: startup probe has not answered yet" },
    },
    [],
  ],
  ["readiness that goes", { status: { ready: true } }, { status: {} }, ["Warning Unready: no longer ready"]],
  [
    "readiness that goes as it stops",
    { status: { ready: true }, stopping: true },
    { status: {}, stopping: true },
    [],
  ],
  [
    "an eviction",
    { status: { phase: PodPhase.RUNNING } },
    { status: { phase: PodPhase.FAILED, reason: "Evicted", message: "too much on disk" } },
    ["Warning Evicted: its node has evicted it: too much on disk"],
  ],
  [
    "the end of all",
    { status: { phase: PodPhase.RUNNING } },
    { status: { phase: PodPhase.SUCCEEDED } },
    ["Normal Completed: its containers have completed successfully"],
  ],
  [
    "a network that can't be set up",
    { status: {} },
    { status: { reason: "NetworkSetupFailed", message: "no CNI plugin" } },
    ["Warning NetworkSetupFailed: no CNI plugin"],
  ],
];

describe("pods", () => {
  for (const [what, before, after, expected] of podCases) {
    test(what, () => {
      const change = { type: "pod", before: before && aPod(before), after: after && aPod(after) } as const;
      assert.deepEqual(lines(change), expected);
    });
  }

  test("does not attribute events of a pod to the next pod with that name", () => {
    const before = aPod(withContainer({ ...RUNNING, lastTermination: end(1), restartCount: 1 }));
    const next = aPod({ status: { ready: true } });
    const after = { ...next, record: { ...next.record, uid: "another" } };
    assert.deepEqual(lines({ type: "pod", before, after }), [
      "Normal Scheduled: placed on node n1",
      "Normal Ready: all of its containers are ready",
    ]);
  });

  test("names the workload and the node in an event", () => {
    const [event] = eventsOf({ type: "pod", before: aPod({ node: "" }), after: aPod() });
    assert.equal(event?.workload, "shop/container_service/web");
    assert.equal(event?.node, "n1");
  });

  test("chooses the event's reason by the reason of the stop", () => {
    const reasonOf = (stopReason: string) => {
      const stopping = aPod({ stopping: true });
      const after = { ...stopping, record: { ...stopping.record, stopReason } };
      return lines({ type: "pod", before: aPod(), after });
    };
    assert.deepEqual(reasonOf("Preempted by shop/big-1"), [
      "Warning Preempted: stops to make room for shop/big-1",
    ]);
    assert.deepEqual(reasonOf("its node has the taint gone:NoExecute"), [
      "Warning TaintEviction: stops: its node has the taint gone:NoExecute",
    ]);
    assert.deepEqual(reasonOf("an older revision"), ["Normal Stopping: stops: an older revision"]);
  });
});

describe("nodes", () => {
  const cases: readonly (readonly [
    string,
    NodeEntry | undefined,
    NodeEntry | undefined,
    readonly string[],
  ])[] = [
    ["one that joins", undefined, aNode(), ["Normal NodeJoined: has joined"]],
    ["one that is forgotten", aNode(), undefined, ["Normal NodeForgotten: was removed"]],
    ["one that goes", aNode(), aNode({ ready: false }), ["Warning NodeUnreachable: gone"]],
    ["one that comes back", aNode({ ready: false }), aNode(), ["Normal NodeReady: is connected and ready"]],
    ["one that is assumed ready after a start", aNode({ ready: false }), unseen(aNode()), []],
    [
      "a cordon and a taint",
      aNode(),
      withRecord({ unschedulable: true, taints: [taint("gpu")] }),
      [
        "Normal Cordoned: accepts no new pods; existing pods stay",
        "Normal Tainted: has the taint gpu=x:NoSchedule",
      ],
    ],
    [
      "both gone",
      withRecord({ unschedulable: true, taints: [taint("gpu")] }),
      aNode(),
      [
        "Normal Uncordoned: accepts new pods again",
        "Normal Untainted: no longer has the taint gpu=x:NoSchedule",
      ],
    ],
    [
      "a full disk",
      aNode(),
      withCondition("DiskPressure", true, "97 % used"),
      ["Warning NodeProblem: DiskPressure: 97 % used"],
    ],
    [
      "a disk that gets fuller",
      withCondition("DiskPressure", true, "97 %"),
      withCondition("DiskPressure", true, "98 %"),
      [],
    ],
    [
      "a disk with room again",
      withCondition("DiskPressure", true, "97 % used"),
      withCondition("DiskPressure", false, ""),
      ["Normal NodeProblemOver: DiskPressure is healthy again"],
    ],
    [
      "damaged files of its agent, which hinder no pod",
      aNode(),
      withCondition("DataDamaged", true, "boot-id is damaged"),
      ["Warning DataDamaged: boot-id is damaged"],
    ],
    [
      "the same files still damaged",
      withCondition("DataDamaged", true, "boot-id is damaged"),
      withCondition("DataDamaged", true, "boot-id is damaged"),
      [],
    ],
    [
      "a host that rebooted",
      withReport({ bootId: "a" }),
      withReport({ bootId: "b" }),
      ["Warning Rebooted: its host has rebooted"],
    ],
    [
      "another agent",
      withReport({ agentVersion: "1.0.0" }),
      withReport({ agentVersion: "1.1.0" }),
      ["Normal AgentChanged: agent 1.0.0 → 1.1.0"],
    ],
  ];
  for (const [what, before, after, expected] of cases) {
    test(what, () => assert.deepEqual(lines({ type: "node", before, after }), expected));
  }
});

test("does not record a rollback as a change of secrets", () => {
  const web = aWorkloadEntry();
  const { workload } = web;
  const back = { ...web, workload: workload && { ...workload, templateHash: "of-an-earlier-revision" } };
  assert.deepEqual(lines({ type: "resource", before: web, after: back }), []);
  const { applied } = web;
  const changed = { ...web, applied: applied && { ...applied, templateHash: "with-other-contents" } };
  assert.match(
    lines({ type: "resource", before: web, after: changed }).join(),
    /contents of a secret or config map/,
  );
});

test("records when resources are created, changed and deleted", () => {
  const web = aWorkloadEntry({ specHash: "a", rolloutId: "r-1" });
  const changed = aWorkloadEntry({ specHash: "b", rolloutId: "r-2" });
  const going = aWorkloadEntry({ specHash: "b", rolloutId: "r-2", deleting: true });
  const linesOf = (before: typeof web | undefined, after: typeof web | undefined) =>
    lines({ type: "resource", before, after });
  assert.deepEqual(linesOf(undefined, web), ["Normal Created: created in rollout r-1"]);
  assert.deepEqual(linesOf(web, web), []);
  assert.deepEqual(linesOf(web, changed), ["Normal Changed: changed in rollout r-2"]);
  assert.deepEqual(linesOf(changed, going), ["Normal Deleting: deletion requested"]);
  assert.deepEqual(linesOf(going, undefined), ["Normal Deleted: deleted completely"]);
  const by = (entry: typeof web, fields: object) => ({ ...entry, record: { ...entry.record, ...fields } });
  assert.deepEqual(linesOf(undefined, by(web, { changedBy: "deploy bot" })), [
    "Normal Created: created by deploy bot in rollout r-1",
  ]);
  assert.deepEqual(linesOf(changed, by(going, { deletedBy: "anna", changedBy: "deploy bot" })), [
    "Normal Deleting: deletion requested by anna",
  ]);
  const run = by(web, { owner: { kind: "cron_job", name: "nightly" }, rolloutId: "" });
  const [made] = eventsOf({ type: "resource", before: undefined, after: run });
  assert.deepEqual([made?.message, made?.workload], ["created by cron_job/nightly", "shop/cron_job/nightly"]);
  const service = eventsOf({ type: "resource", before: undefined, after: aServiceEntry() });
  assert.deepEqual(
    service.map(({ kind, name, rolloutId }) => [kind, name, rolloutId]),
    [["service", "web", "r-1"]],
  );
});

function lines(change: Parameters<typeof eventsOf>[0]): string[] {
  return eventsOf(change).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
}

function withContainer(container: Partly<ContainerStatus>): PodFields {
  return { status: { containers: [{ name: "main", image: "app:v1", ...container }] } as unknown as Status };
}

function unseen(node: NodeEntry): NodeEntry {
  return { ...node, health: { ...node.health, lastSeenMs: undefined } };
}

function withRecord(fields: Partial<NodeEntry["record"]>): NodeEntry {
  const node = aNode();
  return { ...node, record: { ...node.record, ...fields } };
}

function withReport(fields: Partial<NonNullable<NodeEntry["report"]>>): NodeEntry {
  const node = aNode();
  return node.report === undefined ? node : { ...node, report: { ...node.report, ...fields } };
}

function withCondition(type: string, status: boolean, message: string): NodeEntry {
  const report = aNode().report?.report;
  const condition = { type, status, message, reason: "", lastTransitionAt: undefined, since: undefined };
  return report === undefined ? aNode() : withReport({ report: { ...report, conditions: [condition] } });
}

function taint(key: string) {
  return { key, value: "x", effect: "NoSchedule", addedAt: undefined };
}
