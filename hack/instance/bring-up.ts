import { join } from "node:path";
import { bundlePrograms, PROGRAMS } from "../bundling/bundle-programs.ts";
import { containerdPlaces, waitForContainerd, writeContainerdConfig } from "../lib/containerd.ts";
import { ensureEnvoy } from "../lib/envoy.ts";
import { ensureEtcd } from "../lib/etcd-server.ts";
import { ENVOY_TOOLS, installMissing, TOOLS } from "../lib/host-tools.ts";
import { ensureNerdctl } from "../lib/nerdctl.ts";
import { SetupError } from "../lib/setup-error.ts";
import { writeConfigFiles } from "./config-files.ts";
import { describePrograms } from "./describe-programs.ts";
import { deployExample, type ExampleAnswer } from "./example.ts";
import type { UpFlags } from "./flags.ts";
import { forageCommand } from "./forage-command.ts";
import { type Instance, instancePaths, instanceRunDir, readInstance, writeInstance } from "./instance.ts";
import { withLock } from "./lock.ts";
import { readProgramRecord } from "./program.ts";
import { runPrograms } from "./programs.ts";
import type { Progress } from "./progress.ts";
import { giveJoinToken, makeGateway, waitForCoordinator, waitForNode } from "./readiness.ts";
import { settleInstance } from "./settle.ts";

export interface BringUpOptions {
  readonly root: string;
  readonly flags: UpFlags;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

export interface BringUpResult {
  readonly instance: Instance;
  readonly example: ExampleAnswer | undefined;
}

/** Starts an instance or repairs it, whatever its state. Changes nothing if everything runs already. */
export function bringUp(options: BringUpOptions): Promise<BringUpResult> {
  return withLock(instancePaths(options.flags.dataDir).lock, () => bringUpLocked(options));
}

async function bringUpLocked({ root, flags, progress, signal }: BringUpOptions): Promise<BringUpResult> {
  const { step } = progress;
  await step("Debian packages", (report) => installMissing(TOOLS, { report, signal }));
  const nerdctl = await step("nerdctl", (report) => ensureNerdctl({ report, signal }));
  const envoy = await step("Envoy", (report) => envoyIfThereIsOne(report, signal));
  const etcd = await etcdIfRequested(flags, progress, signal);
  await step("programs bundled", () => bundleAll(root));
  let instance = await step("settings", () => settleInstance(flags, nerdctl, envoy, etcd));
  writeInstance(instance);
  const configs = writeConfigFiles(instance);
  const paths = instancePaths(instance.dataDir);
  const programs = {
    dir: paths.programs,
    supervisor: { node: process.execPath, script: join(root, "dist", "supervisor.mjs") },
  };
  const specs = describePrograms(root, instance, configs);
  const forage = forageCommand(root, paths.cliConfig, signal);

  // An agent that ran before needs nothing else. A new one needs a token, so the coordinator must run first.
  const first = specs.filter(({ name }) => name !== "agent" || readProgramRecord(paths.programs, name));
  await step(instance.containerd.own ? "containerd and coordinator" : "coordinator", async () => {
    if (instance.containerd.own) writeContainerdConfig(ownPlaces(instance));
    await runPrograms(programs, first);
    if (instance.containerd.own) await waitForContainerd(instance.containerd.address, { signal });
    await waitForCoordinator(instance, signal);
  });
  await step(`node ${instance.nodeName} ready`, async () => {
    await giveJoinToken(instance, forage);
    await runPrograms(programs, specs);
    await waitForNode(instance, forage, signal);
    if (instance.gateway) await makeGateway(instance, forage);
  });
  if (!flags.example) return { instance, example: undefined };
  const { example, digest } = await step("example deployed", (report) =>
    deployExample({ root, instance, forage, report, signal }),
  );
  instance = { ...instance, example: digest };
  writeInstance(instance);
  return { instance, example };
}

/** Installs Envoy if it is available. Without it the node is no gateway, and everything else works. */
async function envoyIfThereIsOne(
  report: (step: string) => void,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await installMissing(ENVOY_TOOLS, { report, signal });
    return await ensureEnvoy({ report, signal });
  } catch (error) {
    signal.throwIfAborted();
    report(`no gateway: ${error instanceof SetupError ? error.advice : error}`);
    return undefined;
  }
}

/** Compiles etcd for a new instance with etcd, and finds it for an existing one. */
async function etcdIfRequested(
  flags: UpFlags,
  { step }: Progress,
  signal: AbortSignal,
): Promise<string | undefined> {
  const before = readInstance(flags.dataDir);
  const isRequested = before === undefined ? flags.store === "etcd" : before.etcd !== undefined;
  return isRequested ? step("etcd", (report) => ensureEtcd({ report, signal })) : undefined;
}

async function bundleAll(root: string): Promise<void> {
  const { missing } = await bundlePrograms({ root, outDir: join(root, "dist"), programs: PROGRAMS });
  if (missing.length > 0)
    throw new SetupError("MISSING_TOOL", `this checkout has no ${missing.join(", ")}`, "git status");
}

function ownPlaces(instance: Instance) {
  return containerdPlaces(instancePaths(instance.dataDir).containerd, instanceRunDir(instance.id));
}
