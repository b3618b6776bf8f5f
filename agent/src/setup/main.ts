import { hostname } from "node:os";
import { resolve } from "node:path";
import { type Config, ConfigError, readConfig } from "../config.ts";
import { checkHost, findingsText } from "./check/check-host.ts";
import { checkedHost } from "./checked-host.ts";
import { writeHostBundle } from "./host-bundle.ts";
import { joinHost } from "./join-host.ts";
import { joiningHost } from "./joining-host.ts";
import { SetupError } from "./setup-error.ts";
import { parseSetupTask, SETUP_USAGE, type SetupTask } from "./setup-flags.ts";

// A separate program, because the agent would keep this code in memory.
async function main(): Promise<void> {
  const task = parseSetupTask(process.argv.slice(2));
  if (task.type === "help") {
    process.stdout.write(SETUP_USAGE);
    return;
  }
  const interrupt = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => interrupt.abort());
  if (task.type === "support-bundle") await supportBundle(task);
  else if (task.type === "join") await joinHost(task, joiningHost(), interrupt.signal);
  else process.exitCode = await check(task);
}

async function supportBundle({ config, file }: Extract<SetupTask, { readonly type: "support-bundle" }>) {
  const host = checkedHost();
  const now = new Date(host.nowMs()).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const path = resolve(file ?? `forage-support-${hostname()}-${now}.tar.gz`);
  // A configuration that can't be read may be the problem, so everything else is collected nevertheless.
  const settings = (): Promise<Config> => readConfig(["--config", config], process.env, hostname());
  const { bytes, problems } = await writeHostBundle(path, { host, settings });
  process.stdout.write(`${path}: ${bytes} bytes\n`);
  for (const { path: missing, problem } of problems)
    process.stderr.write(`not complete: ${missing}: ${problem}\n`);
}

async function check({ config, output }: Extract<SetupTask, { readonly type: "check" }>): Promise<0 | 1> {
  const settings = await readConfig(["--config", config], process.env, hostname());
  const findings = await checkHost(checkedHost(), settings);
  const isOk = findings.every(({ result }) => result !== "failure");
  process.stdout.write(
    output === "json" ? `${JSON.stringify({ ok: isOk, findings })}\n` : findingsText(findings),
  );
  return isOk ? 0 : 1;
}

main().catch((error: unknown) => {
  const isKnown = error instanceof SetupError || error instanceof ConfigError;
  const message = isKnown ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`forage-agent: ${message}\n`);
  process.exit(error instanceof SetupError ? error.exitCode : error instanceof ConfigError ? 2 : 1);
});
