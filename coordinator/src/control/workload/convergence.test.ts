import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type {
  ContainerServiceStatus,
  RevisionRecord,
  RolloutAttempt,
} from "@forage/proto/forage/store/v1/store";
import { aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { isReady } from "../../endpoints/readiness.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import { planWorkload } from "./plan.ts";
import type { WorkloadStep } from "./workload-step.ts";

const SEEDS = 150;
const ROUNDS = 40;
/** The number of rounds without faults. Each round starts or stops at least one of the few pods. */
const CALM_ROUNDS = 60;

test("reaches the desired state from random states, within the limits of the update strategy", () => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const fleet = new Fleet(randomOf(seed));
    for (let round = 0; round < ROUNDS; round++) {
      fleet.change();
      checkStep(fleet, `seed ${seed} round ${round}`);
    }
    for (let round = 0; round < CALM_ROUNDS; round++) {
      fleet.settle();
      checkStep(fleet, `seed ${seed} calm round ${round}`);
    }
    const { replicas, templateHash } = fleet.workload;
    assert.deepEqual(fleet.plan(), [], `seed ${seed}: there is nothing left to do`);
    const left = fleet.pods.map((p) => [p.record.templateHash === templateHash, fleet.isReady(p)]);
    assert.deepEqual(
      left,
      Array.from({ length: replicas }, () => [true, true]),
      `seed ${seed}: the pods are the desired ones`,
    );
  }
});

/** Asserts that the plan's steps keep the limits. Random faults may exceed them. */
function checkStep(fleet: Fleet, where: string): void {
  const { replicas } = fleet.workload;
  const servingBefore = fleet.serving();
  const steps = fleet.plan();
  fleet.execute(steps);
  const surge = Math.ceil(replicas * 0.25);
  if (steps.some(({ type }) => type === "create-pods")) {
    assert.ok(
      fleet.active() <= replicas + surge,
      `${where}: ${fleet.active()} active of ${replicas} + ${surge}`,
    );
  }
  const needed = replicas - Math.floor(replicas * 0.25);
  assert.ok(
    fleet.serving() >= Math.min(servingBefore, needed),
    `${where}: ${fleet.serving()} of ${needed} serve`,
  );
}

/** Simulates the pods of one workload on nodes that are lost and return. */
class Fleet {
  pods: PodEntry[] = [];
  #resource: ResourceEntry = aWorkloadEntry();
  #status: ContainerServiceStatus | undefined;
  #revisions: RevisionRecord[] = [];
  #names = 0;
  readonly #away = new Set<string>();
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
    this.#apply();
  }

  get workload(): NonNullable<ResourceEntry["workload"]> {
    const { workload } = this.#resource;
    assert.ok(workload);
    return workload;
  }

  plan(): WorkloadStep[] {
    return planWorkload({
      resource: this.#resource,
      pods: this.pods,
      nodeExists: () => true,
      imagesOn: () => ({ type: "present" }),
      nodeReady: (node) => !this.#away.has(node),
      nowMs: 0,
      upSinceMs: 0,
      status: this.#status,
      revisions: this.#revisions,
      unschedulable: () => undefined,
      limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 0 },
      pickVictims: (pods, count) => this.#random.shuffled(pods).slice(0, count),
    });
  }

  isReady(pod: PodEntry): boolean {
    return isReady(pod, (node) => !this.#away.has(node));
  }

  active(): number {
    return this.pods.filter(({ record }) => record.stoppingSince === undefined).length;
  }

  serving(): number {
    return this.pods.filter((pod) => this.isReady(pod)).length;
  }

  execute(steps: readonly WorkloadStep[]): void {
    for (const step of steps) {
      if (step.type === "start-rollout") this.#write(step.attempt, step.revision, step.forget);
      if (step.type === "update-rollout")
        this.#write(step.attempt, step.good && { ...step.good, good: true });
      if (step.type === "create-pods") for (let i = 0; i < step.count; i++) this.#create();
      if (step.type === "stop-pod") this.#replace(step.pod, aPod({ ...keptOf(step.pod), stopping: true }));
      if (step.type === "relabel-pod")
        this.#replace(step.pod, aPod({ ...keptOf(step.pod), labels: this.workload.labels }));
      if (step.type === "forget-pod") this.pods = this.pods.filter((pod) => pod !== step.pod);
    }
  }

  /** Makes a random change: mostly of a pod, sometimes of a node or the specification. */
  change(): void {
    if (this.#random.chance(0.1)) this.#apply();
    const node = `n${this.#random.below(3)}`;
    if (this.#random.chance(0.1)) this.#away.add(node);
    if (this.#random.chance(0.3)) this.#away.delete(node);
    for (const pod of this.pods) {
      if (this.#random.chance(0.4)) this.#progress(pod, this.#random.chance(0.7));
    }
  }

  /** Meets every condition that pods and workloads wait for. */
  settle(): void {
    this.#away.clear();
    for (const pod of this.pods) this.#progress(pod, true);
  }

  #apply(): void {
    const image = `app:v${this.#random.below(4)}`;
    const replicas = this.#random.pick([0, 1, 2, 3, 5, 8]);
    const labels = { release: `${this.#random.below(2)}` };
    const spec = { scaling: { replicas }, container: { name: "main", image } };
    this.#resource = aWorkloadEntry({ spec, labels });
  }

  #write(attempt: RolloutAttempt, revision: RevisionRecord | undefined, gone: readonly number[] = []): void {
    this.#status = { paused: false, attempt };
    if (revision === undefined) return;
    const left = this.#revisions.filter(({ number }) => number !== revision.number && !gone.includes(number));
    this.#revisions = [...left, revision];
  }

  #create(): void {
    const { templateHash, labels } = this.workload;
    this.pods.push(aPod({ name: `web-${this.#names++}`, hash: templateHash, labels, node: "" }));
  }

  /** Moves the pod to its next phase, or to an earlier one. */
  #progress(pod: PodEntry, well: boolean): void {
    const fields = fieldsOf(pod);
    if (fields.stopping) {
      const status = { phase: PodPhase.REMOVED };
      if (pod.record.node !== "") this.#replace(pod, aPod({ ...fields, status }));
    } else if (fields.node === "") this.#replace(pod, aPod({ ...fields, node: `n${this.#random.below(3)}` }));
    else this.#replace(pod, aPod({ ...fields, status: { ready: well, phase: PodPhase.RUNNING } }));
  }

  #replace(before: PodEntry, after: PodEntry): void {
    this.pods = this.pods.map((pod) => (pod === before ? after : pod));
  }
}

function fieldsOf({ record }: PodEntry) {
  const { name, node, templateHash: hash, labels, stoppingSince } = record;
  return { name, node, hash, labels, stopping: stoppingSince !== undefined };
}

/** Returns the pod with the last status that its node reported. */
function keptOf(pod: PodEntry) {
  return { ...fieldsOf(pod), ...(pod.status && { status: pod.status }) };
}
