import assert from "node:assert/strict";
import { PodPhase, type PodStatus } from "@forage/proto/forage/agent/v1/agent";
import {
  AttemptState,
  ContainerServiceStatus,
  type RevisionRecord,
  type RolloutAttempt,
} from "@forage/proto/forage/store/v1/store";
import type { UnschedulablePod } from "../../src/control/placement/unschedulable-pods.ts";
import { planWorkload } from "../../src/control/workload/plan.ts";
import type { WorkloadInput } from "../../src/control/workload/workload-input.ts";
import type { WorkloadStep } from "../../src/control/workload/workload-step.ts";
import { effectiveWorkload } from "../../src/model/effective-workload.ts";
import type { PodEntry, ResourceEntry } from "../../src/state/entries.ts";
import { aPod, aWorkloadEntry } from "./entries.ts";

type StatusFields = Parameters<typeof PodStatus.fromPartial>[0];

/**
 * Rolls out one container service in memory, step by step. Its pods are named `p0`, `p1`, … in the
 * order of creation.
 */
export class RolloutPlay {
  pods: PodEntry[] = [];
  revisions: RevisionRecord[] = [];
  status: ContainerServiceStatus | undefined;
  nowMs = 1_000_000;
  upSinceMs = 0;
  /** The nodes whose agents are unreachable. */
  readonly away = new Set<string>();
  readonly unschedulable = new Map<string, UnschedulablePod>();
  #applied: ResourceEntry = aWorkloadEntry();
  #generation = 0n;
  #names = 0;

  /** Applies the image. `annotations` are those of the pod_config. */
  apply(image: string, spec: object = {}, annotations: Readonly<Record<string, string>> = {}): void {
    const podConfig = { annotations };
    const entry = aWorkloadEntry({ spec: { container: { name: "main", image }, podConfig, ...spec } });
    this.#generation++;
    this.#applied = { ...entry, record: { ...entry.record, generation: this.#generation } };
  }

  get resource(): ResourceEntry {
    const { record, applied } = this.#applied;
    assert.ok(applied);
    const workload = effectiveWorkload(record, applied, this.status, (number) =>
      this.revisions.find((revision) => revision.number === number),
    );
    return { ...this.#applied, workload };
  }

  get attempt(): RolloutAttempt {
    assert.ok(this.status?.attempt);
    return this.status.attempt;
  }

  /** Evaluates the workload once and executes the steps. Returns their descriptions. */
  evaluate(): string[] {
    const steps = planWorkload(this.input());
    for (const step of steps) this.#take(step);
    return steps.map((step) => this.#wordsOf(step));
  }

  /** Evaluates until there is nothing to do. Returns all steps. */
  settle(): string[] {
    const done: string[] = [];
    for (let looks = 0; looks < 50; looks++) {
      const words = this.evaluate();
      if (words.length === 0) return done;
      done.push(...words);
    }
    return assert.fail(`it never settles: ${done.slice(-10).join(", ")}`);
  }

  /**
   * Lets all pods run and stopping pods end, repeatedly, until no step is left. Returns the steps.
   */
  finish(): string[] {
    const done: string[] = [];
    for (let rounds = 0; rounds < 50; rounds++) {
      const words = this.settle();
      done.push(...words);
      if (!this.runAll() && words.length === 0) return done;
    }
    return assert.fail(`it never ends: ${done.slice(-10).join(", ")}`);
  }

  /** Makes every pod ready, and removes every stopping one. Returns whether anything changed. */
  runAll(): boolean {
    const before = this.pods;
    this.pods = this.pods.filter((pod) => pod.record.stoppingSince === undefined);
    for (const pod of this.pods) if (!pod.status?.ready) this.says(pod.record.name, { ready: true });
    return before.length !== this.pods.length || before.some((pod) => !this.pods.includes(pod));
  }

  /** Reports a pod's status from a node, to which the pod belongs from then on. */
  says(name: string, status: StatusFields, node = "n1"): void {
    this.#change(name, (pod) => {
      const { templateHash: hash, stoppingSince, template } = pod.record;
      const stopping = stoppingSince !== undefined;
      const reported = { phase: PodPhase.RUNNING, ...status };
      const made = aPod({ name, hash, node, stopping, status: reported, observedAtMs: this.nowMs });
      return { ...made, record: { ...made.record, template } };
    });
  }

  /** Makes the pod's container crash repeatedly. */
  crashes(name: string, node?: string): void {
    this.waits(name, "CrashLoopBackOff", "starts again soon", 2, node);
  }

  waits(name: string, reason: string, message: string, restartCount = 0, node?: string): void {
    const container = { name: "main", restartCount, state: { $case: "waiting", value: { reason, message } } };
    this.says(name, { phase: PodPhase.PENDING, containers: [container] } as StatusFields, node);
  }

  /** Removes the pod completely. */
  vanishes(name: string): void {
    this.pods = this.pods.filter((pod) => pod.record.name !== name);
  }

  /** Describes the present pods, such as `p0 app:v1 ready`. */
  picture(): string[] {
    return this.pods.map((pod) => {
      const image = pod.record.template?.container?.image;
      const state = pod.record.stoppingSince ? "stopping" : pod.status?.ready ? "ready" : "waiting";
      return `${pod.record.name} ${image} ${state}`;
    });
  }

  /** Returns the state of the rollout: `SUCCEEDED`, `ROLLED_BACK`, … */
  state(): string {
    const word = Object.entries(AttemptState).find(([, value]) => value === this.attempt.state);
    return word?.[0] ?? "";
  }

  decide(change: Partial<ContainerServiceStatus>): void {
    this.status = { ...(this.status ?? ContainerServiceStatus.fromPartial({})), ...change };
  }

  input(): WorkloadInput {
    return {
      resource: this.resource,
      pods: this.pods,
      status: this.status,
      revisions: this.revisions,
      nodeExists: () => true,
      nodeReady: (node) => !this.away.has(node),
      unschedulable: (uid) => this.unschedulable.get(uid),
      imagesOn: () => ({ type: "present" }),
      nowMs: this.nowMs,
      upSinceMs: this.upSinceMs,
      limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 0 },
      pickVictims: (pods, count) => pods.slice(0, count),
    };
  }

  #take(step: WorkloadStep): void {
    switch (step.type) {
      case "start-rollout":
        this.decide({ attempt: step.attempt });
        this.#keep(step.revision, step.forget);
        return;
      case "update-rollout":
        this.decide({ attempt: step.attempt });
        if (step.good !== undefined) this.#keep({ ...step.good, good: true }, []);
        return;
      case "create-pods":
        for (let i = 0; i < step.count; i++) {
          const made = aPod({ name: `p${this.#names++}`, hash: step.of.templateHash, node: "" });
          this.pods = [...this.pods, { ...made, record: { ...made.record, template: step.of.template } }];
        }
        return;
      case "stop-pod":
        this.#change(step.pod.record.name, (pod) => {
          const { name, templateHash: hash, node, template } = pod.record;
          const stopped = aPod({
            name,
            hash,
            node,
            stopping: true,
            ...(pod.status && { status: pod.status }),
          });
          return { ...stopped, record: { ...stopped.record, template } };
        });
        return;
      case "forget-pod":
        this.vanishes(step.pod.record.name);
        return;
      default:
        return;
    }
  }

  #keep(revision: RevisionRecord, forget: readonly number[]): void {
    const gone = [revision.number, ...forget];
    this.revisions = [...this.revisions.filter(({ number }) => !gone.includes(number)), revision];
  }

  #change(name: string, change: (pod: PodEntry) => PodEntry): void {
    this.pods = this.pods.map((pod) => (pod.record.name === name ? change(pod) : pod));
  }

  #wordsOf(step: WorkloadStep): string {
    switch (step.type) {
      case "start-rollout":
        return `start revision ${step.revision.number}`;
      case "update-rollout":
        return `${this.state()}: ${step.why}`;
      case "create-pods":
        return `create ${step.count} ${step.of.template.container?.image}`;
      case "stop-pod":
      case "forget-pod":
      case "relabel-pod":
        return `${step.type.replace("-pod", "")} ${step.pod.record.name}`;
      default:
        return step.type;
    }
  }
}
