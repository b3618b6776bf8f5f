import { Resource } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { pause } from "../pause.ts";
import { completions, jobStatus } from "../view/jobs.ts";

/** Jobs take seconds to hours, so half a second more doesn't matter. */
const LOOK_MS = 500;

export const jobRun = defineCommand({
  name: "run",
  summary: "Start a run of a cron job now, besides its schedule",
  details: `The run starts whatever else runs, and is kept and removed like those of the schedule.
With --name, the same name again starts nothing. With --wait, exit code 1 says that the job has failed.`,
  flags: {
    "from-cron": { kind: "text", hint: "NAME", help: "the cron job" },
    name: { kind: "text", hint: "NAME", help: "what the run is called; made up by default" },
    wait: { kind: "switch", short: "w", help: "until the run has ended" },
  },
  run: async (invocation) => {
    const { flags } = invocation;
    const context = contextOf(invocation);
    const cronJob = flags["from-cron"] ?? "";
    if (cronJob === "") throw new CliError("USAGE", "say which cron job: --from-cron NAME");
    const { namespace } = context.settings;
    return withCoordinator(context, async (coordinator) => {
      const request = { namespace, cronJob, name: flags.name ?? "" };
      const { job } = await coordinator.call(operator.runCronJob, request);
      const name = job?.name ?? "";
      if (flags.wait) return wait(context, coordinator, name);
      printOne(
        context,
        () => ({ namespace, kind: "job", name }),
        () => (context.format === "name" ? `job/${name}\n` : `job/${name} started\n`),
      );
      return EXIT.ok;
    });
  },
});

/** Prints each change, and returns the exit code. */
async function wait(context: Context, coordinator: Coordinator, name: string): Promise<ExitCode> {
  const { world, signal, format } = context;
  const quiet = format === "json" || format === "yaml" || format === "name";
  let told = "";
  for (;;) {
    const run = await find(context, coordinator, name);
    if (run !== undefined) {
      const line = lineOf(run);
      if (!quiet && line !== told) world.stdout.write(`${line}\n`);
      told = line;
      const condition = run.job?.condition ?? "";
      if (condition !== "") {
        if (quiet)
          printOne(
            context,
            () => Resource.toJSON(run),
            () => `job/${name}\n`,
          );
        return condition === "Complete" ? EXIT.ok : EXIT.failed;
      }
    }
    await pause(LOOK_MS, signal);
  }
}

/** Undefined while the coordinator is away, as when it is being restarted: the run goes on without it. */
async function find(
  { settings }: Context,
  coordinator: Coordinator,
  name: string,
): Promise<Resource | undefined> {
  try {
    const request = { namespace: settings.namespace, labels: {} };
    const { resources } = await coordinator.call(operator.listResources, request);
    const run = resources.find((resource) => resource.kind === "job" && resource.name === name);
    if (run === undefined || run.deleting) throw new CliError("NOT_FOUND", `job "${name}" is gone`);
    return run;
  } catch (error) {
    if (error instanceof CallError && error.passing) return undefined;
    throw error;
  }
}

function lineOf(run: Resource): string {
  const { job } = run;
  if (job === undefined) return `job/${run.name}`;
  const failed = job.failed === 0 ? "" : `, ${job.failed} failed`;
  const message = job.message === "" ? "" : `: ${job.message}`;
  return `job/${run.name} ${jobStatus(run)} ${completions(job)} completed${failed}${message}`;
}
