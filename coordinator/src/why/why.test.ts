import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { aNode, aPod, type PodFields } from "../../test/support/entries.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { NodeEntry } from "../state/entries.ts";
import { cause, type Diagnosis } from "./cause.ts";
import { explainNode, type NodeInput } from "./node.ts";
import { explainPod, type PodInput } from "./pod.ts";
import { explainWorkload, type PodCauses, type WorkloadInput } from "./workload.ts";

const NOW_MS = 1_000_000;
const READY: PodFields = { status: { ready: true, phase: PodPhase.RUNNING } };
const ended = {
  exitCode: 3,
  reason: "Error",
  message: "no beans\nbye\n",
  finishedAt: toTimestamp(NOW_MS - 5_000),
};

function container(fields: object): PodFields {
  return {
    status: { containers: [{ name: "main", image: "app:v1", ...fields }] } as PodFields["status"] & object,
  };
}

function waiting(reason: string, message = "", retryMs?: number): object {
  const retryAt = retryMs === undefined ? undefined : toTimestamp(retryMs);
  return { state: { $case: "waiting", value: { reason, message, retryAt } } };
}

describe("pods", () => {
  const cases: readonly (readonly [string, PodFields, Partial<PodInput>, readonly string[], RegExp])[] = [
    ["one that is ready", READY, {}, [], /^pod web-1 is ready$/],
    ["one that has completed", { status: { phase: PodPhase.SUCCEEDED } }, {}, [], /has completed/],
    ["one that is being placed", { node: "" }, {}, ["Scheduling: it is being placed"], /is not ready/],
    [
      "one that no node takes",
      { node: "" },
      {
        unschedulable: "0/2 nodes: 2 insufficient cpu",
        rejections: ["n1: insufficient cpu", "n2: insufficient cpu"],
        nearest: "free 1 cpu on n1",
      },
      [
        "Unschedulable: no node fits: 0/2 nodes: 2 insufficient cpu | n1: insufficient cpu | n2: insufficient cpu → the least that would help: free 1 cpu on n1",
      ],
      /no node fits/,
    ],
    [
      "one whose node has not reported it",
      {},
      {},
      ["Starting: node n1 has received it and has not reported its state yet"],
      /is not ready/,
    ],
    [
      "one on a node that is lost",
      READY,
      { node: aNode({ ready: false }) },
      ["NodeLost: its node n1 is not ready: gone → forage why node/n1"],
      /is not ready: its node n1/,
    ],
    [
      "one on a node that was forgotten",
      READY,
      { node: undefined },
      ["NodeForgotten: its node n1 was removed; another pod replaces it"],
      /./,
    ],
    [
      "one that stops on a lost node",
      { stopping: true },
      { node: aNode({ ready: false }) },
      [
        /^Stopping: it has been stopping for \d+ s: its workload no longer needs it$/,
        "NodeLost: its node n1 is not ready: gone → forage why node/n1",
      ] as never,
      /is stopping/,
    ],
    [
      "an image that is not there",
      container(waiting("ErrImageNotFound", "no such tag")),
      {},
      [
        "ErrImageNotFound: container main: no such tag (on node n1) → check the image's name and tag, then apply again",
      ],
      /no such tag/,
    ],
    [
      "a registry that is down",
      container(waiting("ImagePullBackOff", "connection refused", NOW_MS + 20_000)),
      {},
      [
        "ImagePullBackOff: container main: connection refused (on node n1); the next try is in 20 s → check that the node reaches the registry; the agent retries automatically",
      ],
      /./,
    ],
    [
      "a pull that goes on",
      container(waiting("ImagePull", "pulling app:v1: 30 %")),
      {},
      ["ImagePull: container main: pulling app:v1: 30 % (on node n1)"],
      /30 %/,
    ],
    [
      "a crash with its back-off",
      container({
        ...waiting("CrashLoopBackOff", "…", NOW_MS + 20_000),
        lastTermination: ended,
        restartCount: 4,
      }),
      {},
      [
        "CrashLoopBackOff: container main exited with code 3 (Error) 5 s ago, restarted 4 times; the next try is in 20 s | no beans | bye → read its logs: forage logs web-1 -c main --previous -n shop",
      ],
      /exited with code 3/,
    ],
    [
      "too little memory",
      container({
        ...waiting("CrashLoopBackOff"),
        lastTermination: { ...ended, exitCode: 137, signal: 9, reason: "OOMKilled", message: "" },
      }),
      {},
      [
        "CrashLoopBackOff: container main was killed by signal 9 (OOMKilled) 5 s ago → give it a higher memory limit, or have it use less",
      ],
      /./,
    ],
    [
      "a missing secret",
      container(waiting("CreateContainerConfigError", 'secret "db" is missing')),
      {},
      [
        'CreateContainerConfigError: container main: secret "db" is missing → create what is missing (`forage secret set NAME --from-file KEY=FILE -n shop`, `forage config set NAME --from-file KEY=FILE -n shop`); the pod then starts automatically',
      ],
      /./,
    ],
    [
      "a probe that fails",
      {
        status: { reason: "ContainersNotReady", message: "container main: readiness probe fails: HTTP 500" },
      },
      {},
      [
        "ProbeFailed: container main: readiness probe fails: HTTP 500 → check its responses and logs: forage logs web-1 -n shop",
      ],
      /HTTP 500/,
    ],
    [
      "a network that can't be set up",
      { status: { reason: "NetworkSetupFailed", message: "no CNI plugin" } },
      {},
      ["NetworkSetupFailed: no CNI plugin → read the agent's log on the node: journalctl -u forage-agent"],
      /./,
    ],
    [
      "an eviction",
      { status: { phase: PodPhase.FAILED, reason: "Evicted", message: "too much on disk" } },
      {},
      ["Evicted: too much on disk"],
      /./,
    ],
    [
      "one that is ready after a restart",
      {
        status: {
          ready: true,
          containers: [
            {
              name: "main",
              ready: true,
              restartCount: 1,
              lastTermination: ended,
              state: { $case: "running", value: {} },
            },
          ],
        } as never,
      },
      {},
      [
        "Restarted: container main was restarted once; container main exited with code 3 (Error) 5 s ago | no beans | bye → read its logs: forage logs web-1 -c main --previous -n shop",
      ],
      /is ready/,
    ],
  ];
  for (const [what, fields, more, causes, summary] of cases) {
    test(what, () => {
      const input = {
        pod: aPod(fields),
        node: aNode(),
        unschedulable: undefined,
        rejections: [],
        nearest: "",
        nowMs: NOW_MS,
      };
      const explained = explainPod({ ...input, ...more });
      const found = lines(explained);
      for (const [index, cause] of (causes as readonly (string | RegExp)[]).entries()) {
        if (typeof cause === "string") assert.equal(found[index], cause);
        else assert.match(found[index] ?? "", cause);
      }
      assert.equal(found.length, causes.length);
      assert.match(explained.summary, summary);
    });
  }
});

describe("workloads", () => {
  const crash: PodCauses = { pod: aPod(), ready: false, causes: [cause("CrashLoopBackOff", "it crashes")] };
  const alsoCrashing = { ...crash, pod: aPod({ name: "web-2" }) };
  const serving: PodCauses = { pod: aPod({ name: "web-3" }), ready: true, causes: [] };
  const going: PodCauses = {
    pod: aPod({ name: "web-4" }),
    ready: false,
    causes: [cause("Stopping", "it stops")],
  };
  const rollout = {
    state: "progressing",
    message: "",
    paused: false,
    canary: false,
    waitsForPromotion: false,
    prefetchStatus: "",
    rolledBackTo: 0,
    keptPods: [],
  };
  const noImage = (name: string, node: string): PodCauses => ({
    pod: aPod({ name, node }),
    ready: false,
    causes: [cause("ErrImageNotFound", `container main: no such tag (on node ${node})`)],
  });
  const cases: readonly (readonly [string, Partial<WorkloadInput>, readonly string[]])[] = [
    ["one that is healthy", { replicas: 1, pods: [serving] }, []],
    [
      "pods that have yet to be made",
      { replicas: 2, pods: [serving] },
      ["Progressing: its pods are being created"],
    ],
    [
      "groups pods with the same cause, and lists stopping pods last",
      { replicas: 3, pods: [going, crash, serving, alsoCrashing] },
      ["CrashLoopBackOff: pods web-1, web-2: it crashes", "Stopping: pod web-4: it stops"],
    ],
    [
      "an image that several nodes can't get: the message names them",
      { replicas: 2, pods: [noImage("web-5", "n2"), noImage("web-6", "n1")] },
      ["ErrImageNotFound: pods web-5, web-6: container main: no such tag (on nodes n1, n2)"],
    ],
    [
      "a removal",
      { deleting: true, replicas: undefined, pods: [going] },
      ["Deleting: it is being deleted; 1 of its pods are left", "Stopping: pod web-4: it stops"],
    ],
    [
      "something that it depends on",
      { waitsFor: [{ name: "job/migrate", why: "0 of 1 completed", failed: false }], replicas: 1 },
      ["DependencyNotMet: it waits for job/migrate: 0 of 1 completed → forage why job/migrate -n shop"],
    ],
    [
      "a rollout that was rolled back",
      {
        rollout: {
          ...rollout,
          state: "rolled back",
          rolledBackTo: 3,
          message: "pod web-9 exited with code 3",
        },
      },
      [
        "RolledBack: it was rolled back to revision 3: pod web-9 exited with code 3 → correct what is wrong with the newer version and apply it again",
      ],
    ],
    [
      "a rollout that failed",
      { rollout: { ...rollout, state: "failed", message: "0/2 ready" } },
      [
        "RolloutFailed: 0/2 ready → correct it and apply again, or go back: forage rollout undo container_service/web -n shop",
      ],
    ],
    [
      "a pause",
      { rollout: { ...rollout, paused: true } },
      [
        "Paused: its rollout is paused: what is lost is replaced, nothing else changes → forage rollout resume container_service/web -n shop",
      ],
    ],
    [
      "a canary",
      { rollout: { ...rollout, canary: true, waitsForPromotion: true } },
      [
        "CanaryHold: the first pods of the new version have been created; the rollout waits for a decision → forage rollout promote container_service/web -n shop, or forage rollout undo container_service/web -n shop",
      ],
    ],
    [
      "images that are fetched ahead",
      { rollout: { ...rollout, prefetchStatus: "fetching on n1" } },
      ["Prefetching: fetching on n1"],
    ],
    [
      "a decision of the autoscaler",
      { replicas: 1, pods: [serving], scaled: "1 replicas: cpu at 20 % of 80 %" },
      ["Autoscaled: 1 replicas: cpu at 20 % of 80 %"],
    ],
    [
      "a job that failed",
      { kind: "job", job: { condition: "Failed", message: "failed 7 times" } },
      [
        "JobFailed: failed 7 times → correct it and apply it again; the logs of its pods: forage logs job/web -n shop",
      ],
    ],
  ];
  for (const [what, fields, causes] of cases) {
    test(what, () => {
      const input = {
        namespace: "shop",
        kind: "container_service",
        name: "web",
        deleting: false,
        replicas: 0,
        pods: [],
        waitsFor: [],
      };
      const rest = { rollout: undefined, scaled: undefined, job: undefined };
      const explained = explainWorkload({ ...input, ...rest, ...fields });
      assert.deepEqual(lines(explained), causes);
      const worse = causes.filter((line) => !line.startsWith("Autoscaled"));
      assert.equal(explained.healthy, worse.length === 0);
      assert.equal(explained.summary.match(/\d+\/2 ready/g)?.length ?? 1, 1, explained.summary);
    });
  }
});

describe("nodes", () => {
  const withRecord = (fields: Partial<NodeEntry["record"]>): NodeEntry => {
    const node = aNode();
    return { ...node, record: { ...node.record, ...fields } };
  };
  const gone = aNode({ ready: false });
  const cases: readonly (readonly [string, Partial<NodeInput>, readonly RegExp[], boolean])[] = [
    ["one that is ready", {}, [], true],
    [
      "one that is lost",
      { node: { ...gone, health: { ...gone.health, lastSeenMs: NOW_MS - 30_000 } }, pods: 2 },
      [/^NodeLost: gone; last heartbeat 30 s ago → .*Its 2 pods/],
      false,
    ],
    [
      "one that is cordoned",
      { node: withRecord({ unschedulable: true }) },
      [/^Cordoned: .*forage node uncordon n1/],
      false,
    ],
    [
      "one that is drained, as far as budgets let it",
      { node: withRecord({ unschedulable: true }), drainWaits: ["shop/web-1: 1 of 2 replicas"] },
      [/^Draining: it is being drained and waits for 1 pods \| shop\/web-1: 1 of 2 replicas$/, /^Cordoned/],
      false,
    ],
    [
      "one with a taint",
      {
        node: withRecord({ taints: [{ key: "gpu", value: "x", effect: "NoSchedule", addedAt: undefined }] }),
      },
      [/^Tainted: .* \| gpu=x:NoSchedule → /],
      true,
    ],
    ["one whose certificates are refused", { node: withRecord({ revoked: true }) }, [/^Revoked/], false],
  ];
  for (const [what, fields, causes, healthy] of cases) {
    test(what, () => {
      const quiet = { node: aNode(), pods: 0, drainWaits: undefined, nowMs: NOW_MS };
      const explained = explainNode({ ...quiet, ...fields });
      const found = lines(explained);
      assert.equal(found.length, causes.length, found.join("\n"));
      for (const [index, cause] of causes.entries()) assert.match(found[index] ?? "", cause);
      assert.equal(explained.healthy, healthy);
    });
  }
});

test("counts the details beyond the limit", () => {
  const { details } = cause(
    "Unschedulable",
    "",
    "",
    Array.from({ length: 30 }, (_, index) => `n${index}`),
  );
  assert.deepEqual([details.length, details.at(-1)], [21, "and 10 more"]);
});

/** Formats causes as `Reason: message | detail → advice`. */
function lines({ causes }: Diagnosis): string[] {
  return causes.map(({ reason, message, details, advice }) => {
    return `${[`${reason}: ${message}`, ...details].join(" | ")}${advice === "" ? "" : ` → ${advice}`}`;
  });
}
