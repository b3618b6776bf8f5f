import { access, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import { normalizeImage } from "../../runtime/image-reference.ts";
import { HOST_NETWORK, type RuntimeContainer, RuntimeError } from "../../runtime/runtime.ts";
import type { TaskOptions } from "../config/task-options.ts";
import { DriverError } from "../driver-error.ts";
import type { NewerTaskConfig } from "../rpc/newer-calls.ts";
import { containerSpec } from "./container-spec.ts";
import { checkHostFeatures } from "./host-features.ts";
import { removeTask } from "./remove-task.ts";
import { coreMhzOf } from "./resource-limits.ts";
import type { TaskDependencies } from "./task-dependencies.ts";
import { checkStreams, resolveMounts, writeTaskFiles } from "./task-files.ts";
import { labelsOf } from "./task-labels.ts";
import { containerNameOf, parseTaskId } from "./task-name.ts";
import { taskNetwork } from "./task-network.ts";
import type { TaskState } from "./task-state.ts";

export interface StartedTask {
  readonly state: TaskState;
  readonly container: RuntimeContainer;
}

interface Start {
  readonly task: NewerTaskConfig;
  readonly options: TaskOptions;
  readonly name: string;
  /** Owner of the task's own network. */
  readonly owner: string;
}

const HOSTNAME_MAX_LENGTH = 63;
const INIT_PROGRAMS = [
  "/usr/bin/tini",
  "/usr/bin/tini-static",
  "/usr/bin/docker-init",
  "/usr/libexec/docker/docker-init",
  "/sbin/tini",
];

/** Starts a task's container with everything it needs. A failed start removes everything it has created. */
export async function startTask(
  dependencies: TaskDependencies,
  task: NewerTaskConfig,
  options: TaskOptions,
  signal: AbortSignal,
): Promise<StartedTask> {
  const name = containerNameOf(dependencies.instance, task.id);
  const start: Start = { task, options, name, owner: name };
  const marker = join(dependencies.startsDir, name);
  // If the plugin is killed during the start, this file remains, and the next plugin removes the container by it.
  await mkdir(dependencies.startsDir, { recursive: true, mode: 0o700 });
  await writeFile(marker, "", { mode: 0o600 });
  let ownNetwork = false;
  try {
    checkHostFeatures(options, relabelledMounts(task), dependencies.host);
    await checkStreams(task);
    const image = normalizeImage(options.image);
    // Holding the image first prevents its removal between the check and the start.
    dependencies.images.hold(image, task.id);
    await dependencies.images.ensure(image, options, () => publishPull(dependencies, task, image), signal);
    const network = taskNetwork(task, options);
    ownNetwork = network.type === "own";
    const sandbox =
      network.type === "own"
        ? (await dependencies.networks.attach(start.owner, network.ports, signal)).sandbox
        : undefined;
    const path = network.type === "own" ? (sandbox?.namespacePath ?? "") : network.path;
    const id = await run(dependencies, start, image, path, sandbox?.address, signal);
    const container = await seen(dependencies, id, signal);
    const portMap = network.type === "own" ? network.portMap : undefined;
    const own = sandbox && { sandbox, portMap: portMap ?? {} };
    return { state: { ...stateOf(dependencies, start, image, container), ...own }, container };
  } catch (error) {
    await undo(dependencies, start, ownNetwork);
    throw error;
  } finally {
    await rm(marker, { force: true });
  }
}

async function run(
  dependencies: TaskDependencies,
  { task, options, name }: Start,
  image: string,
  networkNamespace: string,
  ownAddress: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const dir = join(dependencies.filesDir, name);
  const hosts = task.networkIsolationSpec?.hostsConfig;
  const hostname = options.hostname ?? (hosts?.hostname || hostnameOf(task));
  const address = ownAddress ?? (networkNamespace === HOST_NETWORK ? undefined : hosts?.address || undefined);
  const files = await writeTaskFiles({ dir, task, options, networkNamespace, hostname, address });
  const spec = containerSpec(task, options, {
    ...{ name, image, hostname, networkNamespace, files },
    labels: labelsOf(task, options, dependencies.options),
    mounts: await resolveMounts(task, options, dependencies.options),
    consoleFile: join(dir, "console.log"),
    ...(options.init && { initProgram: await findInit() }),
    cores: dependencies.cores,
  });
  return (await dependencies.runtime.run(spec, signal)).id;
}

async function seen(
  { runtime }: TaskDependencies,
  id: string,
  signal: AbortSignal,
): Promise<RuntimeContainer> {
  const container = await runtime.inspect(id, signal);
  if (container !== undefined) return container;
  throw new RuntimeError("START_FAILED", "another program removed the container while it started", {
    retryable: true,
  });
}

function stateOf(
  dependencies: TaskDependencies,
  { task, name }: Start,
  image: string,
  container: RuntimeContainer,
): TaskState {
  const process = container.pid === undefined ? undefined : dependencies.processes.identify(container.pid);
  return {
    id: task.id,
    name: task.name,
    allocId: task.allocId || parseTaskId(task.id).allocId,
    containerId: container.id,
    containerName: name,
    image,
    startedAtMs: container.startedAtMs ?? dependencies.clock.nowMs(),
    ...(process && { process }),
    bootId: dependencies.processes.bootId(),
    coreMhz: coreMhzOf(task, dependencies.cores) ?? dependencies.coreMhz,
  };
}

async function undo(
  dependencies: TaskDependencies,
  { task, name, owner }: Start,
  ownNetwork: boolean,
): Promise<void> {
  const found = (await dependencies.runtime.list(new AbortController().signal).catch(() => [])).find(
    (it) => it.name === name,
  );
  const remains = {
    containerId: found?.id,
    containerName: name,
    networkOwner: ownNetwork ? owner : undefined,
  };
  dependencies.images.releaseAll(task.id);
  await removeTask(dependencies, remains).catch((error: unknown) =>
    dependencies.log("error", "failed-start-not-cleaned-up", { task: task.id, error: String(error) }),
  );
}

function relabelledMounts({ additions }: NewerTaskConfig): readonly string[] {
  const mounts = additions?.mounts ?? [];
  return mounts.filter(({ selinuxLabel }) => selinuxLabel !== "").map(({ taskPath }) => taskPath);
}

function publishPull({ events }: TaskDependencies, { id, allocId, name }: TaskConfig, image: string): void {
  events.publish({ id, allocId, name }, "Downloading image", { image });
}

function hostnameOf({ id, name }: TaskConfig): string {
  const { allocId } = parseTaskId(id);
  const label = name.replace(/[^A-Za-z0-9-]/g, "-").replace(/^-+/, "");
  return `${label || "task"}-${allocId.slice(0, 8)}`.slice(0, HOSTNAME_MAX_LENGTH).replace(/-+$/, "");
}

async function findInit(): Promise<string> {
  for (const path of INIT_PROGRAMS)
    if (
      await access(path).then(
        () => true,
        () => false,
      )
    )
      return path;
  throw new DriverError(
    "FAILED_PRECONDITION",
    "init: this host has no init program for containers: install the package tini",
  );
}
