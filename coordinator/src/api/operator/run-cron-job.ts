import type { RunCronJobRequest, RunCronJobResponse } from "@forage/proto/forage/operator/v1/operator";
import { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { cronInput } from "../../control/cron/cron-input.ts";
import { type CronRun, isActive, MAX_ACTIVE_RUNS } from "../../control/cron/plan.ts";
import { runResource } from "../../control/cron/run-resource.ts";
import { CoordinatorError } from "../../errors.ts";
import { encodeRecord } from "../../model/codec.ts";
import { cronJobOf } from "../../model/cron-job.ts";
import type { EventRecorder } from "../../model/event.ts";
import { resourceKey } from "../../model/keys.ts";
import { workloadKey } from "../../model/workload.ts";
import type { Caller } from "../../rpc/caller.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import type { NamespaceRules } from "../namespaces/namespace-rules.ts";
import { policyRoleOf } from "../namespaces/policy.ts";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { dnsLabelProblem } from "../validate/syntax/names.ts";

export interface RunCronJobOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly randomName: (length: number) => string;
  readonly namespaceRules: Pick<NamespaceRules, "checkResource" | "checkRun" | "inTurn">;
}

/** The limit of a run's name, which is that of applied resources. It leaves room for the suffix of pods' names. */
const MAX_NAME_LENGTH = 48;

/**
 * Starts a run in addition to the schedule, independent of other runs. A repeated request with the same name returns the
 * existing run. @throws CoordinatorError INVALID if the run violates the policy or the quota of its namespace,
 * RESOURCE_EXHAUSTED if too many runs are active.
 */
export function runCronJob(
  request: RunCronJobRequest,
  caller: Caller,
  options: RunCronJobOptions,
): Promise<RunCronJobResponse> {
  return options.namespaceRules.inTurn(request.namespace, () => startRun(request, caller, options));
}

async function startRun(
  request: RunCronJobRequest,
  caller: Caller,
  { store, state, clock, events, randomName, namespaceRules }: RunCronJobOptions,
): Promise<RunCronJobResponse> {
  const { namespace, cronJob } = request;
  if (request.name !== "") {
    const findings = new Findings();
    new Field(findings).at("name").check(dnsLabelProblem(request.name, MAX_NAME_LENGTH));
    findings.raise();
  }
  const owner = state.resource(resourceKey(namespace, "cron_job", cronJob));
  const cron = owner && !owner.record.deleting ? cronJobOf(owner.record) : undefined;
  if (owner === undefined || cron === undefined)
    throw new CoordinatorError("NOT_FOUND", `there is no cron job "${cronJob}" in namespace "${namespace}"`);
  const name = request.name || `${cronJob}-${randomName(8)}`;
  const run = runResource(cron, owner.record, name, undefined, clock.nowMs());
  const record = { ...run, policyRole: policyRoleOf(caller, namespace) };
  const key = resourceKey(namespace, "job", name);
  if (record.resource !== undefined) {
    namespaceRules.checkResource(record.resource, namespace, caller);
    // A repeated request stores nothing.
    if (state.resource(key) === undefined) {
      assertRoom(cronJob, cronInput(workloadKey(namespace, "cron_job", cronJob), clock.nowMs(), state).runs);
      namespaceRules.checkRun(owner.record, record.resource, caller);
    }
  }
  const result = await store.txn(
    [
      { type: "absent", key },
      { type: "mod-revision", key: owner.key, revision: owner.revision },
    ],
    [{ type: "put", key, value: encodeRecord(ResourceRecord, record) }],
  );
  await state.reached(result.revision);
  if (!result.succeeded) assertIsRunOf(state, key, cronJob);
  else {
    const about = {
      namespace,
      kind: "cron_job",
      name: cronJob,
      workload: `${namespace}/cron_job/${cronJob}`,
    };
    events.record({
      ...about,
      type: "Normal",
      reason: "CronRunStarted",
      message: `${name}: started on request`,
    });
  }
  return { job: { namespace, kind: "job", name } };
}

function assertRoom(cronJob: string, runs: readonly CronRun[]): void {
  const active = runs.filter(isActive).length;
  if (active < MAX_ACTIVE_RUNS) return;
  throw new CoordinatorError(
    "RESOURCE_EXHAUSTED",
    `${active} runs of cron job "${cronJob}" are active, which is the limit: wait for one to end, or delete one`,
  );
}

function assertIsRunOf(state: ClusterView, key: string, cronJob: string): void {
  const there = state.resource(key)?.record;
  if (there?.owner?.kind === "cron_job" && there.owner.name === cronJob && !there.deleting) return;
  if (there === undefined)
    throw new CoordinatorError("CONFLICT", "the cron job was changed at the same time; try again");
  throw new CoordinatorError("ALREADY_EXISTS", `job "${there.name}" exists and is not a run of "${cronJob}"`);
}
