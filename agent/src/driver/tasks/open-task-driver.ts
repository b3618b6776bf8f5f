import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { availableParallelism, cpus } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { DEFAULT_HOST_PORTS, HostNetwork } from "../../network/host-network.ts";
import { probePort } from "../../network/probe-port.ts";
import { runCommand } from "../../network/run-command.ts";
import { HelperWatch } from "../../runtime/nerdctl/helper-watch.ts";
import { NerdctlRuntime } from "../../runtime/nerdctl/nerdctl-runtime.ts";
import type { DriverOptions } from "../config/driver-options.ts";
import type { TaskDriver } from "../driver-service.ts";
import type { DriverLog } from "./driver-log.ts";
import { ExitWatch } from "./exit-watch.ts";
import { readHostFeatures } from "./host-features.ts";
import { removeInterrupted } from "./interrupted-starts.ts";
import { hostProcesses } from "./processes.ts";
import type { TaskDependencies } from "./task-dependencies.ts";
import { RuntimeTaskDriver } from "./task-driver.ts";
import { TaskEvents } from "./task-events.ts";
import { TaskImages } from "./task-images.ts";
import { TaskNetworks } from "./task-networks.ts";

export type { DriverLog } from "./driver-log.ts";

export interface TaskDriverContext {
  readonly options: DriverOptions;
  readonly clock: Clock;
  readonly log: DriverLog;
  /** A file whose content changes with every boot of the host. Default: `/proc/sys/kernel/random/boot_id`. */
  readonly bootIdFile?: string;
}

const BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id";
const DEFAULT_DATA_DIR = "/var/lib/forage/nomad";
/** The address range of tasks, distinct from that of the agent's pods, which is 10.64.0.0/16 by default. */
export const TASK_CIDR = "10.66.0.0/16";
const MHZ_FALLBACK = 1_000;

/** Opens the driver's tasks. Called once, when the first call about a task arrives. */
export async function openTaskDriver(context: TaskDriverContext): Promise<TaskDriver> {
  const { options, clock, log, bootIdFile = BOOT_ID_FILE } = context;
  const { dataDir, runDir } = options;
  for (const dir of [dataDir, runDir]) await mkdir(dir, { recursive: true, mode: 0o700 });
  const instance = driverInstance(dataDir);
  const runtime = openRuntime(options, instance, clock);
  const processes = hostProcesses(bootIdFile);
  const networks = new TaskNetworks({
    open: () => openNetwork(options, instance, clock, log),
    dir: join(dataDir, "networks"),
    noteDamage: (path, reason, remedy) => log("warn", "data-file-damaged", { path, reason, remedy }),
  });
  const helpers = await HelperWatch.start({
    ...{ dir: join(dataDir, "programs"), ociRuntimes: [], clock },
    noteDamage: (path, reason) => log("warn", "data-file-damaged", { path, reason }),
    onError: (error) => log("warn", "helper-programs-not-restored", { error: String(error) }),
  });
  const dependencies: TaskDependencies = {
    ...{ helpers, instance, options, runtime, networks, processes, clock, log },
    images: new TaskImages({ runtime, options, clock, log }),
    exits: new ExitWatch({ runtime, processes, clock, log }),
    events: new TaskEvents(() => clock.nowMs()),
    filesDir: join(runDir, "tasks"),
    startsDir: join(runDir, "starts"),
    coreMhz: coreMhz(),
    cores: availableParallelism(),
    host: readHostFeatures(),
  };
  // Read before this driver adds starts of its own.
  const interrupted = await readdir(dependencies.startsDir).catch(() => []);
  // Restores the published ports of running tasks before anything else changes the table.
  await networks
    .adopt()
    .catch((error: unknown) => log("error", "networks-not-taken-over", { error: String(error) }));
  void removeInterrupted(dependencies, interrupted);
  return new RuntimeTaskDriver(dependencies);
}

/** Returns the name that marks containers and names the bridge: at most eight letters and digits. */
export function driverInstance(dataDir: string): string {
  if (dataDir === DEFAULT_DATA_DIR) return "nomad";
  return `n${createHash("sha256").update(dataDir).digest("hex").slice(0, 7)}`;
}

function openRuntime(options: DriverOptions, instance: string, clock: Clock): NerdctlRuntime {
  const { nerdctl, containerdAddress, containerdNamespace, dataDir, runDir, cniBinDir } = options;
  return new NerdctlRuntime({
    nerdctlPath: nerdctl,
    address: containerdAddress,
    namespace: containerdNamespace,
    stateDir: join(runDir, "nerdctl"),
    programDir: join(dataDir, "programs"),
    volumeDir: join(dataDir, "image-volumes"),
    cniBinDir,
    cniConfigDir: join(runDir, "cni"),
    instance,
    clock,
  });
}

function openNetwork(
  { dataDir, cniBinDir }: DriverOptions,
  instance: string,
  clock: Clock,
  log: DriverLog,
): HostNetwork {
  return new HostNetwork(
    {
      instance,
      dataDir: join(dataDir, "network"),
      podCidr: TASK_CIDR,
      // Nomad chooses the host ports.
      hostPorts: DEFAULT_HOST_PORTS,
      cniDirectory: cniBinDir,
      poolSize: 0,
    },
    {
      clock,
      random: Math.random,
      run: runCommand,
      probePort,
      log: {
        info: ({ event, ...fields }) => log("info", event, fields),
        warn: ({ event, ...fields }) => log("warn", event, fields),
      },
      noteDamage: (path, reason) => log("warn", "file-damaged", { path, reason }),
    },
  );
}

/** Returns the highest frequency of the first core in MHz, by which Nomad's own drivers multiply usage. */
function coreMhz(): number {
  try {
    const khz = Number(readFileSync("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "utf8"));
    if (khz > 0) return khz / 1_000;
  } catch {
    // Virtual machines often don't have this file.
  }
  return cpus()[0]?.speed || MHZ_FALLBACK;
}
