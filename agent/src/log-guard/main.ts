import { hostname } from "node:os";
import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import { systemClock } from "../clock.ts";
import { readConfig } from "../config.ts";
import { KEPT_LOGS_DIRECTORY, KeptLogs } from "../logs/kept-logs.ts";
import { LogRotator } from "../logs/log-rotator.ts";
import { HostPodFiles } from "../pods/host-pod-files.ts";

const EXIT_USAGE = 2;

/**
 * Bounds containers' logs while the agent is away, as the agent does: containers go on writing then, and nothing else would stop a log from
 * filling the disk. It must not run beside the agent. Takes the agent's own settings.
 */
async function main(): Promise<void> {
  const { dataDir, logs } = await readConfig(process.argv.slice(2), process.env, hostname()).catch(
    (error: unknown) => {
      process.stderr.write(`forage-log-guard: ${messageOf(error)}\n`);
      return process.exit(EXIT_USAGE);
    },
  );
  const keeper = new LogRotator({
    clock: systemClock,
    onGrown: (bytes) => files.grown(bytes),
    onError: (path, error) => say("log-not-bounded", { path, error: String(error) }),
  });
  const files = new HostPodFiles(join(dataDir, "pods"), keeper, {
    limitBytes: logs.nodeLimitBytes,
    onLimit: (removed, limitBytes) => say("logs-deleted-for-room", { logs: removed.length, limitBytes }),
    onError: (error) => say("logs-not-bounded", { error: String(error) }),
    // They count too. The agent deletes them when their time is over.
    kept: new KeptLogs(join(dataDir, KEPT_LOGS_DIRECTORY), {
      clock: systemClock,
      onError: (error) => say("logs-not-kept", { error: String(error) }),
    }),
  });
  // No container starts without the agent, so there are no other logs than these.
  await files.adopt();
  say("log-guard-started", {});
  const watching = setInterval(() => undefined, 2 ** 30);
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.once(signal, () => {
      clearInterval(watching);
      void keeper.close().then(() => process.exit(0));
    });
}

function say(event: string, fields: Readonly<Record<string, unknown>>): void {
  const entry = { time: Date.now(), program: "log-guard", event, ...fields };
  process.stdout.write(`${JSON.stringify(entry)}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`forage-log-guard: ${messageOf(error)}\n`);
  process.exit(1);
});
