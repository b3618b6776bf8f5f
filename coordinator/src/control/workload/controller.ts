import type { Logger } from "pino";
import { CoordinatorError } from "../../errors.ts";
import { batches, type Piece } from "../../model/batches.ts";
import { type Workload, workloadKey } from "../../model/workload.ts";
import type { Change, PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { State } from "../../state/state.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../clock.ts";
import { withRetirements } from "../drain/retire.ts";
import { Loop } from "../loop.ts";
import type { Unplaced } from "../placement/unplaced.ts";
import { createPod, forgetPod, rewritePod, stopPod } from "../pod-pieces.ts";
import type { ProgressLimits } from "../rollout/progress-input.ts";
import { nextLookMs, planWorkload } from "./plan.ts";
import { workloadInput } from "./view-input.ts";
import { describeStep, type WorkloadStep } from "./workload-step.ts";

export interface WorkloadControllerOptions {
  readonly store: Store;
  readonly state: State;
  readonly clock: Clock;
  readonly log: Logger;
  /** That many lowercase letters and digits. */
  readonly randomName: (length: number) => string;
  readonly pickVictims: (pods: readonly PodEntry[], count: number) => readonly PodEntry[];
  /** What reconciles kinds that have a plan of their own. They share the loop, which takes what stands earlier in a bundle first. */
  readonly ofKind?: Readonly<Record<string, (key: string) => Promise<number | undefined>>>;
  readonly unplaced: Pick<Unplaced, "get">;
  readonly limits: ProgressLimits;
}

/** Keeps each workload's pods as its resource wants them. */
export class WorkloadController {
  readonly #options: WorkloadControllerOptions;
  readonly #loop: Loop;
  readonly #unsubscribe: () => void;
  readonly #upSinceMs: number;

  constructor(options: WorkloadControllerOptions) {
    this.#options = options;
    this.#upSinceMs = options.clock.nowMs();
    this.#loop = new Loop({
      name: "workload",
      reconcile: (key) => this.#reconcile(key),
      clock: options.clock,
      log: options.log,
    });
    this.#unsubscribe = options.state.subscribe((changes) => this.#wakeFor(changes));
    for (const { record } of options.state.resources())
      this.#loop.wake(workloadKey(record.namespace, record.kind, record.name));
    for (const pod of options.state.pods()) this.#loop.wake(pod.workloadKey);
  }

  wake(key: string): void {
    this.#loop.wake(key);
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const change of changes) {
      const entry = change.after ?? change.before;
      if (entry === undefined) continue;
      if (change.kind === "pod") this.#loop.wake((entry as PodEntry).workloadKey);
      if (change.kind === "resource") {
        const { namespace, kind, name } = (entry as ResourceEntry).record;
        this.#loop.wake(workloadKey(namespace, kind, name));
      }
      if (
        change.kind === "node" &&
        (change.after === undefined || change.before?.health.ready !== change.after.health.ready)
      ) {
        const name = (change.after ?? change.before)?.name ?? "";
        for (const pod of this.#options.state.podsOnNode(name)) this.#loop.wake(pod.workloadKey);
      }
    }
  }

  async #reconcile(key: string): Promise<number | undefined> {
    const [, itsKind = ""] = key.split("/");
    const other = this.#options.ofKind?.[itsKind];
    if (other !== undefined) return other(key);
    const { log, clock } = this.#options;
    const input = workloadInput(key, clock.nowMs(), { ...this.#options, upSinceMs: this.#upSinceMs });
    const steps = withRetirements(planWorkload(input), input);
    if (steps.length > 0) {
      for (const step of steps) log.info({ workload: key, ...describeStep(step) }, "workload step");
      await this.#execute(input.resource, steps);
    }
    return nextLookMs(input);
  }

  async #execute(resource: ResourceEntry | undefined, steps: readonly WorkloadStep[]): Promise<void> {
    const { store, state } = this.#options;
    const pieces = steps.flatMap((step) => this.#operations(resource, step));
    let reached = 0;
    for (const part of batches(pieces)) {
      const compares = part.flatMap((p) => p.compares);
      if (resource !== undefined)
        compares.push({ kind: "modRevision", key: resource.key, revision: resource.revision });
      const result = await store.txn(
        compares,
        part.flatMap((p) => p.ops),
      );
      reached = result.revision;
      if (!result.succeeded) {
        await state.reached(reached);
        throw new CoordinatorError("CONFLICT", "something changed meanwhile");
      }
    }
    // The next look must see what this one did, or it would do it again.
    await state.reached(reached);
  }

  #operations(resource: ResourceEntry | undefined, step: WorkloadStep): Piece[] {
    switch (step.type) {
      case "create-pods":
        return Array.from({ length: step.count }, () => this.#create(step.of));
      case "stop-pod":
        return [stopPod(step.pod, step.why, this.#options.clock.nowMs())];
      case "relabel-pod": {
        const labels = { ...required(resource?.workload).labels };
        return [rewritePod(step.pod, { ...step.pod.record, labels })];
      }
      case "forget-pod":
        return [forgetPod(step.pod)];
      case "start-rollout":
      case "update-rollout":
        return [];
      case "forget-resource":
        return [{ compares: [], ops: [{ kind: "delete", key: required(resource).key }] }];
      default:
        return step satisfies never;
    }
  }

  #create(workload: Workload): Piece {
    const { randomName, clock, state } = this.#options;
    const className = workload.template.podConfig?.priorityClassName ?? "";
    const pod = {
      namespace: workload.namespace,
      workloadKind: workload.kind,
      workloadName: workload.name,
      name: `${workload.name}-${workload.templateHash.slice(0, 6)}-${randomName(5)}`,
      uid: randomName(12),
      labels: workload.labels,
      template: workload.template,
      templateHash: workload.templateHash,
      priority: state.objects.priorityOf(className),
    };
    return createPod(pod, clock.nowMs());
  }
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new CoordinatorError("INTERNAL", "a step lacks its workload");
  return value;
}
