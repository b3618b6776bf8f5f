import { type Cause, cause, type Diagnosis } from "./cause.ts";

export interface CronJobInput {
  readonly namespace: string;
  readonly name: string;
  readonly deleting: boolean;
  readonly suspended: boolean;
  /** The next run; undefined if the schedule has none. */
  readonly nextMs: number | undefined;
  /** The names of running runs. */
  readonly active: readonly string[];
  /** The ended runs that are kept, newest first. */
  readonly ended: readonly EndedRun[];
}

export interface EndedRun {
  readonly name: string;
  readonly failed: boolean;
  readonly message: string;
}

/** Explains why a cron job is unhealthy: it is suspended, or its newest runs failed. */
export function explainCronJob(input: CronJobInput): Diagnosis {
  const causes = causesOf(input);
  const [first] = causes;
  const healthy = first === undefined;
  const state = healthy ? "is healthy" : "is not healthy";
  const parts = [`cron_job/${input.name} ${state}`, first?.message ?? "", scheduleText(input)];
  return { summary: parts.filter((part) => part !== "").join("; "), healthy, causes };
}

function causesOf({ namespace, name, deleting, suspended, active, ended }: CronJobInput): Cause[] {
  if (deleting)
    return [cause("Deleting", `it is being deleted; ${active.length + ended.length} of its runs are left`)];
  const found: Cause[] = [];
  const firstSuccess = ended.findIndex((run) => !run.failed);
  const failed = firstSuccess === -1 ? ended : ended.slice(0, firstSuccess);
  const [newest] = failed;
  if (newest !== undefined) {
    const many = failed.length === 1 ? "its last run failed" : `its last ${failed.length} runs failed`;
    found.push(
      cause(
        "RunsFailed",
        `${many}, the newest, ${newest.name}: ${newest.message}`,
        `forage why job/${newest.name} --namespace ${namespace}; its logs: forage logs job/${newest.name} --namespace ${namespace}`,
        failed.map((run) => `${run.name}: ${run.message}`),
      ),
    );
  }
  if (suspended)
    found.push(
      cause(
        "Suspended",
        "it is suspended: no run starts",
        `set suspend: false in the manifest of ${name} and apply it`,
      ),
    );
  return found;
}

function scheduleText({ deleting, suspended, nextMs, active }: CronJobInput): string {
  const running = active.length === 0 ? "" : `${active.length} running; `;
  if (deleting || suspended) return running.replace(/; $/, "");
  return `${running}${nextMs === undefined ? "never due again" : `next run at ${new Date(nextMs).toISOString()}`}`;
}
