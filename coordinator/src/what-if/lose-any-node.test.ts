import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import type { NodeLoss, WhatIfResponse } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { aContainerService } from "../../test/support/requests.ts";
import { aRestingFleet, aSizedNode } from "../../test/support/resting-fleet.ts";
import { workloadKey } from "../model/workload.ts";
import type { NodeEntry } from "../state/entries.ts";
import { type LoseAnyNodeOptions, loseAnyNode } from "./lose-any-node.ts";
import { isShort, newlyWaiting } from "./outcome.ts";

const SEEDS = 14;
test("returns the same effect for any one node as for the loss of each node, proved or simulated", async (t) => {
  const counts = { proved: 0, harmful: 0 };
  for (const { title, nodes, services } of fleets()) {
    const fleet = await aRestingFleet(t, nodes, services);
    const any = (options?: LoseAnyNodeOptions): Promise<WhatIfResponse> =>
      fleet.planner.inTurn("tester", (plan) => loseAnyNode(plan, options));
    const [full, proved] = [await any(), await any({ maxTrials: 0 })];
    assert.deepEqual(full.estimated, []);
    const effects: string[] = [];
    for (const { name } of fleet.state.nodes()) {
      const alone = await fleet.whatIf({ $case: "loseNode", value: name });
      const expected = effectOf(alone);
      const where = `${title}, node ${name}`;
      assert.equal(effectOfLoss(full, name), expected, `${where}, in full`);
      const described = full.losses.find(({ node }) => node === name)?.workloads ?? [];
      if (described.length > 0) assert.deepEqual(described, alone.workloads, where);
      effects.push(expected);
      if (expected !== SAFE) counts.harmful++;
      if (proved.estimated.includes(name)) continue;
      assert.equal(effectOfLoss(proved, name), expected, `${where}, proved`);
      counts.proved++;
    }
    assert.equal(
      full.safe,
      effects.every((effect) => effect === SAFE),
    );
  }
  // The comparison is meaningful only if proofs and harm are frequent among these fleets.
  assert.ok(counts.proved > 2 * SEEDS, `${counts.proved} proved`);
  assert.ok(counts.harmful > 2 * SEEDS, `${counts.harmful} harmful`);
});

const SAFE = "safe";

/** Describes the newly waiting pods and the services below their minimum. */
function effectOf({ workloads, safe }: WhatIfResponse): string {
  const lines = workloads.flatMap((outcome) => {
    const key = workloadKey(outcome.namespace, outcome.kind, outcome.name);
    const waits = newlyWaiting(outcome);
    return [
      ...(waits > 0 ? [`${waits} of ${key} wait`] : []),
      ...(isShort(outcome) ? [`${key} has ${outcome.readyLowest} of ${outcome.minimum}`] : []),
    ];
  });
  return safe ? SAFE : lines.sort().join("; ");
}

function effectOfLoss({ losses }: WhatIfResponse, node: string): string {
  const loss: NodeLoss | undefined = losses.find((it) => it.node === node);
  if (loss === undefined) return SAFE;
  const waiting = loss.waiting.map(
    ({ namespace, kind, name, pods }) => `${pods} of ${workloadKey(namespace, kind, name)} wait`,
  );
  const short = loss.short.map(
    ({ namespace, kind, name, readyLowest, minimum }) =>
      `${workloadKey(namespace, kind, name)} has ${readyLowest} of ${minimum}`,
  );
  return [...waiting, ...short].sort().join("; ");
}

interface Case {
  readonly title: string;
  readonly nodes: readonly NodeEntry[];
  readonly services: readonly ForageResource[];
}

function* fleets(): Generator<Case> {
  const zone = (name: string) => ({ "topology.kubernetes.io/zone": name });
  yield {
    title: "free room on the lost node",
    nodes: [aSizedNode("n1"), aSizedNode("n2")],
    services: [aSpreadService({ replicas: 5 })],
  };
  yield {
    title: "a spread over zones, of which one would be empty",
    nodes: [aSizedNode("n1", zone("z0")), aSizedNode("n2", zone("z1"))],
    services: [aSpreadService({ replicas: 2, by: "zone" })],
  };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = randomOf(seed);
    yield { title: `seed ${seed}`, nodes: nodesOf(random), services: servicesOf(random) };
  }
}

/**
 * Returns a service whose pods take a quarter of a node each. They are spread by the topology key
 * if one is given.
 */
function aSpreadService({
  replicas,
  by,
}: {
  readonly replicas: number;
  readonly by?: string;
}): ForageResource {
  const labels = { service: "web" };
  const spread = { maxSkew: 1, topologyKey: by, whenUnsatisfiable: "DoNotSchedule" };
  return aContainerService("web", {
    scaling: { replicas },
    container: {
      name: "main",
      image: "registry.example/team/app:v1",
      resources: { requests: { cpu: "500m", memory: "64Mi" } },
    },
    podConfig: {
      labels,
      ...(by !== undefined && {
        topologySpreadConstraints: [{ ...spread, labelSelector: { matchLabels: labels } }],
      }),
    },
  });
}

function nodesOf(random: Random) {
  const sizes = random.chance(0.4) ? ["2"] : ["1", "2", "4"];
  return Array.from({ length: 3 + random.below(5) }, (_, index) =>
    aSizedNode(
      `n${index + 1}`,
      { "topology.kubernetes.io/zone": `z${index % (1 + random.below(3))}` },
      random.pick(sizes),
    ),
  );
}

function servicesOf(random: Random): ForageResource[] {
  const size = random.chance(0.4) ? ["500m"] : ["250m", "500m", "900m"];
  return Array.from({ length: 1 + random.below(4) }, (_, index) => {
    const labels = { service: `s${index}` };
    const labelSelector = { matchLabels: labels };
    const spread = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector };
    const apart = { required: [{ labelSelector, topologyKey: "kubernetes.io/hostname" }] };
    return aContainerService(`s${index}`, {
      scaling: { replicas: 1 + random.below(6) },
      container: {
        name: "main",
        image: "registry.example/team/app:v1",
        ports: [{ name: "http", containerPort: 8080 + random.below(2), protocol: "TCP" }],
        resources: { requests: { cpu: random.pick(size), memory: "64Mi" } },
      },
      podConfig: {
        labels,
        ...(random.chance(0.15) && { priorityClassName: "system-cluster-critical" }),
        ...(random.chance(0.1) && { topologySpreadConstraints: [spread] }),
        ...(random.chance(0.15) && { affinity: { podAntiAffinity: apart } }),
        ...(random.chance(0.1) && { hostNetwork: true }),
        ...(random.chance(0.1) && { nodeSelector: { "topology.kubernetes.io/zone": "z0" } }),
        ...(random.chance(0.1) && {
          tolerations: [
            {
              key: "node.kubernetes.io/unreachable",
              operator: "Exists",
              tolerationSeconds: BigInt(random.below(3) * 600),
            },
          ],
        }),
      },
      ...(random.chance(0.3) && { updateStrategy: { rollingUpdate: { maxUnavailable: "50%" } } }),
    });
  });
}
