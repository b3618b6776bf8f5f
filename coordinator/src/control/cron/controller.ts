import type { Log } from "@forage/common/log";
import {
  type CronJobStatus,
  ResourceRecord,
  WorkloadStatusRecord,
} from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import type { StoreWrite } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import type { EventRecorder } from "../../model/event.ts";
import { resourceKey, workloadStatusKey } from "../../model/keys.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, ResourceEntry } from "../../state/entries.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { Loop } from "../loop.ts";
import type { StepSink } from "../step-sink.ts";
import { write } from "../write.ts";
import { cronInput } from "./cron-input.ts";
import { describeCronStep } from "./describe-step.ts";
import { cronEventOf } from "./events.ts";
import { KnownSchedules } from "./known-schedules.ts";
import { type CronInput, type CronStep, nextCronEvaluationMs, planCron, type RunQuota } from "./plan.ts";
import { runResource } from "./run-resource.ts";

export interface CronControllerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  /** Receives every step before it is carried out. */
  readonly steps: StepSink;
  /** Nothing is reconciled before it resolves. Default: resolved. */
  readonly started?: Promise<void> | undefined;
  readonly events: EventRecorder;
  /** Whether runs are started when they are due. False in simulations of an apply. Default: true. */
  readonly startRuns?: boolean;
  /** Returns the reason why a namespace's policy rejects the resource's pods. Default: it accepts them. */
  readonly policyRefusal?: (record: ResourceRecord) => string | undefined;
  /** The quotas that limit runs. Default: none. */
  readonly runQuota?: RunQuota;
}

/** The limit of plans in one evaluation. The next evaluation continues. */
const MAX_ROUNDS = 20;
/** The limit of the wait until the next evaluation, so that a changed wall clock is noticed in time. */
const MAX_WAIT_MS = 30_000;

/** Starts runs of cron jobs when they are due, and removes finished runs beyond the history limits. */
export class CronController {
  readonly #options: CronControllerOptions;
  readonly #loop: Loop;
  readonly #schedules = new KnownSchedules();

  constructor(options: CronControllerOptions) {
    this.#options = options;
    this.#loop = new Loop({
      name: "cron",
      reconcile: (key) => this.#reconcile(key),
      clock: options.clock,
      log: options.log,
      started: options.started,
      state: options.state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    for (const entry of options.state.resources()) this.#wakeForResource(entry);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const { type, after, before } of changes) {
      if (type === "resource") this.#wakeForResource(after ?? before);
      if (type !== "workload-status") continue;
      const record = (after ?? before)?.record;
      if (record?.kind !== "job") continue;
      this.#wakeForResource(this.#options.state.resource(resourceKey(record.namespace, "job", record.name)));
    }
  }

  #wakeForResource(entry: ResourceEntry | undefined): void {
    if (entry === undefined) return;
    const { namespace, kind, name, owner } = entry.record;
    if (kind === "cron_job") this.#loop.wake(workloadKey(namespace, kind, name));
    if (owner?.kind === "cron_job") this.#loop.wake(workloadKey(namespace, owner.kind, owner.name));
  }

  async #reconcile(key: string): Promise<number | undefined> {
    const { clock, startRuns = true } = this.#options;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const input = this.#input(key);
      const steps = this.#plan(input);
      if (steps.length === 0) {
        const nextMs = startRuns ? nextCronEvaluationMs(input) : undefined;
        return nextMs === undefined ? undefined : Math.min(MAX_WAIT_MS, Math.max(1, nextMs - clock.nowMs()));
      }
      if (steps.some(({ type }) => type === "start-run")) await this.#startInTurn(key);
      else await this.#carryOut(key, input, steps);
    }
    return 0;
  }

  /** Plans again while it holds the namespace's lock, because a request before it may have used the quota. */
  #startInTurn(key: string): Promise<void> {
    const task = (): Promise<void> => {
      const input = this.#input(key);
      return this.#carryOut(key, input, this.#plan(input));
    };
    const { runQuota } = this.#options;
    const [namespace = ""] = key.split("/");
    return runQuota === undefined ? task() : runQuota.inTurn(namespace, task);
  }

  #plan(input: CronInput): CronStep[] {
    const { startRuns = true } = this.#options;
    return planCron(input).filter((step) => startRuns || !isRun(step));
  }

  async #carryOut(key: string, input: CronInput, steps: readonly CronStep[]): Promise<void> {
    for (const step of steps) {
      this.#options.steps.report({ workload: key, ...describeCronStep(step) });
      await this.#execute(key, input, step);
    }
  }

  #input(key: string): CronInput {
    const { state, clock, policyRefusal, runQuota } = this.#options;
    const input = cronInput(key, clock.nowMs(), state, this.#schedules);
    const { cron, resource, nowMs } = input;
    const quotaRefusal = (name: string, scheduledMs: number): string | undefined => {
      const run = cron && resource && runResource(cron, resource.record, name, scheduledMs, nowMs).resource;
      return run && runQuota?.runRefusal(resource.record, run);
    };
    return { ...input, refusal: resource && policyRefusal?.(resource.record), quotaRefusal };
  }

  async #execute(key: string, input: CronInput, step: CronStep): Promise<void> {
    await write(this.#writeOf(key, input, step), this.#options);
    const event = cronEventOf(step, key);
    if (event !== undefined) this.#options.events.record(event);
  }

  #writeOf(key: string, input: CronInput, step: CronStep): StoreWrite {
    switch (step.type) {
      case "start-run":
        return this.#start(key, input, step);
      case "skip-run":
      case "miss-runs":
      case "write-status":
        return this.#status(key, input, step.status);
      case "remove-run": {
        const { key: runKey, revision, record } = step.run.entry;
        const value = encodeRecord(ResourceRecord, { ...record, deleting: true });
        return {
          compares: [{ type: "mod-revision", key: runKey, revision }],
          ops: [{ type: "put", key: runKey, value }],
        };
      }
      case "forget-resource": {
        const entry = required(input.resource);
        return {
          compares: [{ type: "mod-revision", key: entry.key, revision: entry.revision }],
          ops: [
            { type: "delete", key: entry.key },
            { type: "delete", key: statusKeyOf(key) },
          ],
        };
      }
      default:
        return step satisfies never;
    }
  }

  #start(key: string, input: CronInput, step: Extract<CronStep, { readonly type: "start-run" }>): StoreWrite {
    const owner = required(input.resource).record;
    const nowMs = this.#options.clock.nowMs();
    const record = runResource(required(input.cron), owner, step.name, step.scheduledMs, nowMs);
    const runKey = resourceKey(record.namespace, "job", step.name);
    const status = this.#status(key, input, step.status);
    return {
      compares: [...status.compares, { type: "absent", key: runKey }],
      ops: [...status.ops, { type: "put", key: runKey, value: encodeRecord(ResourceRecord, record) }],
    };
  }

  #status(key: string, { resource }: CronInput, status: CronJobStatus): StoreWrite {
    const owner = required(resource);
    const statusKey = statusKeyOf(key);
    const entry = this.#options.state.workloadStatuses.get(statusKey);
    const { namespace, kind, name } = owner.record;
    const base = entry?.record ?? WorkloadStatusRecord.fromPartial({ namespace, kind, name });
    const value = encodeRecord(WorkloadStatusRecord, {
      ...base,
      status: { $case: "cronJob", value: status },
    });
    return {
      compares: [
        { type: "mod-revision", key: owner.key, revision: owner.revision },
        { type: "mod-revision", key: statusKey, revision: entry?.revision ?? 0 },
      ],
      ops: [{ type: "put", key: statusKey, value }],
    };
  }
}

/** Reports whether the step decides about a due run. */
function isRun({ type }: CronStep): boolean {
  return type === "start-run" || type === "skip-run" || type === "miss-runs";
}

function statusKeyOf(key: string): string {
  const [namespace = "", kind = "", name = ""] = key.split("/");
  return workloadStatusKey(namespace, kind, name);
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new CoordinatorError("INTERNAL", "a step lacks its cron job");
  return value;
}
