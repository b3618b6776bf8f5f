import { join } from "node:path";
import { linkSignals, streamWithLinkedSignal, withLinkedSignal } from "@forage/common/link-signals";
import type { Clock } from "../../clock.ts";
import { CallLimit } from "../call-limit.ts";
import { type ContainerCgroup, findCgroup, guessCgroup, readOomKills } from "../cgroup/container-cgroup.ts";
import { readDetailedUsage, readUsage } from "../cgroup/container-usage.ts";
import { checkSignalName } from "../check-signal-name.ts";
import {
  type ContainerRuntime,
  type ContainerSpec,
  type ContainerUsage,
  type DetailedUsage,
  type PullOptions,
  type RuntimeContainer,
  RuntimeError,
  type RuntimeEvent,
  type RuntimeExec,
  type RuntimeExecOptions,
  type RuntimeVersion,
} from "../runtime.ts";
import { DataRoots, isContainerId } from "./data-roots.ts";
import { streamEvents } from "./event-stream.ts";
import { startExec } from "./exec-session.ts";
import { ExecStarts } from "./exec-starts.ts";
import { NerdctlCli } from "./nerdctl-cli.ts";
import { NerdctlImages } from "./nerdctl-images.ts";
import { findOwnLayer } from "./own-layer.ts";
import { INSPECT_FORMAT, LIST_FORMAT, parseInspect, parseList } from "./parse-container.ts";
import { readVersion } from "./read-version.ts";
import { removeContainers } from "./remove-containers.ts";
import { RunContainer } from "./run-container.ts";
import { ShimSweeper } from "./shim-sweeper.ts";

export interface NerdctlRuntimeOptions {
  /** The nerdctl program, at least 2.0. It must not be moved while containers exist, because their hooks call it. */
  readonly nerdctlPath: string;
  /** The path of containerd's socket. */
  readonly address: string;
  /** The containerd namespace, created if missing. */
  readonly namespace: string;
  /**
   * The directory of nerdctl's own state, private to this instance. Preferably on tmpfs (`/run/…`), because nerdctl
   * syncs each of its many small files, and none is needed after a reboot. Containers can be listed and removed without
   * it.
   */
  readonly stateDir: string;
  /**
   * The directory of the agent's helper programs. It must allow execution, which Debian's /run doesn't, and must
   * persist while containers exist.
   */
  readonly programDir: string;
  /** A directory on disk, private to this instance, for volumes that only images declare. */
  readonly volumeDir: string;
  readonly cniBinDir: string;
  readonly cniConfigDir: string;
  /** Directories with `<registry>/hosts.toml`; undefined: nerdctl's defaults. */
  readonly registryHostsDirs?: readonly string[];
  /** Identifies this instance's containers in a containerd that others may use too. Matches `[A-Za-z0-9._-]+`. */
  readonly instance: string;
  readonly clock: Clock;
  /** The number of concurrent short calls. Default: 8. */
  readonly concurrentCalls?: number;
  /** The time after which a call is killed. Default: 60 s. */
  readonly callTimeoutMs?: number;
  /** The time without progress after which a pull is cancelled. Default: 2 min. */
  readonly pullStallMs?: number;
  /** Called when a shim was ended that had lost its container in a restart of containerd. */
  readonly onShimEnded?: (containerId: string, pid: number) => void;
}

export const INSTANCE_LABEL = "forage.dev/instance";

const CONCURRENT_CALLS = 8;
// The longest call measured, on a busy machine, took 2 s.
const CALL_TIMEOUT_MS = 60_000;
// For a layer of several GB the progress changes by tenths of a GiB, so 1 MB/s still counts as progress.
const PULL_STALL_MS = 120_000;
// Each stop is a nerdctl process of about 12 MB that waits for its container's grace period.
const CONCURRENT_STOPS = 64;
const CONCURRENT_EXECS = 64;
const LIST_TRIES = 5;

/** The ContainerRuntime that calls nerdctl. */
export class NerdctlRuntime implements ContainerRuntime {
  readonly #options: NerdctlRuntimeOptions;
  readonly #cli: NerdctlCli;
  readonly #dataRoots: DataRoots;
  readonly #runs: RunContainer;
  readonly #images: NerdctlImages;
  readonly #shims: ShimSweeper;
  readonly #stops = new CallLimit(CONCURRENT_STOPS);
  readonly #execs = new CallLimit(CONCURRENT_EXECS);
  readonly #execStarts: ExecStarts;
  readonly #cgroups = new Map<string, ContainerCgroup>();
  readonly #closing = new AbortController();

  constructor(options: NerdctlRuntimeOptions) {
    if (!/^[A-Za-z0-9._-]+$/.test(options.instance))
      throw new RangeError(`instance ${JSON.stringify(options.instance)}`);
    this.#options = options;
    const commonRoot = join(options.stateDir, "common");
    this.#cli = new NerdctlCli({
      path: options.nerdctlPath,
      address: options.address,
      namespace: options.namespace,
      dataRoot: commonRoot,
      cniBinDir: options.cniBinDir,
      cniConfigDir: options.cniConfigDir,
      ...(options.registryHostsDirs && { registryHostsDirs: options.registryHostsDirs }),
      concurrentCalls: options.concurrentCalls ?? CONCURRENT_CALLS,
      callTimeoutMs: options.callTimeoutMs ?? CALL_TIMEOUT_MS,
    });
    this.#dataRoots = new DataRoots({
      dataRoots: join(options.stateDir, "containers"),
      commonRoot,
      volumes: options.volumeDir,
      address: options.address,
    });
    this.#runs = new RunContainer({
      cli: this.#cli,
      dataRoots: this.#dataRoots,
      privateDir: options.stateDir,
      labels: { [INSTANCE_LABEL]: options.instance },
      programDir: options.programDir,
    });
    this.#shims = new ShimSweeper({
      clock: options.clock,
      address: options.address,
      namespace: options.namespace,
      listContainers: (signal) => this.#listAllIds(signal),
      onEnded: (containerId, pid) => options.onShimEnded?.(containerId, pid),
    });
    this.#execStarts = new ExecStarts({ clock: options.clock, cgroupOf: (id) => this.#cgroupOf(id) });
    this.#images = new NerdctlImages({
      cli: this.#cli,
      clock: options.clock,
      pullStallMs: options.pullStallMs ?? PULL_STALL_MS,
      privateDir: options.stateDir,
    });
  }

  async version(signal: AbortSignal): Promise<RuntimeVersion> {
    return await this.#during(signal, (until) => readVersion(this.#cli, until));
  }

  list(signal: AbortSignal): Promise<readonly RuntimeContainer[]> {
    return this.#during(signal, (until) => this.#listAndSweep(until));
  }

  async #listAndSweep(signal: AbortSignal): Promise<readonly RuntimeContainer[]> {
    const beforeMs = this.#options.clock.nowMs() - 2 * (this.#options.callTimeoutMs ?? CALL_TIMEOUT_MS);
    // Includes containers that are created between the listing and the sweep.
    const underWay = new Set(this.#runs.underWay);
    const containers = await this.#list(signal);
    for (const name of this.#runs.underWay) underWay.add(name);
    const alive = new Set(containers.map((it) => it.id));
    for (const id of this.#cgroups.keys()) if (!alive.has(id)) this.#cgroups.delete(id);
    await this.#dataRoots.sweep(alive, beforeMs, underWay);
    // A shim that can't be checked costs only memory. The next listing tries again.
    await this.#shims.sweep(alive, signal).catch(() => undefined);
    return containers;
  }

  run(spec: ContainerSpec, signal: AbortSignal): Promise<{ readonly id: string }> {
    return this.#during(signal, (until) => this.#runs.run(spec, until));
  }

  async stop(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    if (!isContainerId(id)) return;
    const seconds = Math.ceil(Math.max(0, graceMs) / 1000);
    const timeoutMs = seconds * 1000 + (this.#options.callTimeoutMs ?? CALL_TIMEOUT_MS);
    const args = ["stop", `--time=${seconds}`, "--", id];
    const stop = (until: AbortSignal) =>
      this.#stops.run(until, () => this.#cli.call(args, { signal: until, timeoutMs, unlimited: true }));
    await this.#during(signal, stop).catch(unlessNotFound);
  }

  async kill(id: string, signalName: string, signal: AbortSignal): Promise<void> {
    checkSignalName(signalName);
    const missing = new RuntimeError("NOT_FOUND", `container ${id} is not running`, { retryable: false });
    if (!isContainerId(id)) throw missing;
    try {
      const args = ["kill", `--signal=${signalName}`, "--", id];
      await this.#during(signal, (until) => this.#cli.call(args, { signal: until }));
    } catch (error) {
      throw error instanceof RuntimeError && /is not running/.test(error.message) ? missing : error;
    }
  }

  async remove(ids: readonly string[], signal: AbortSignal): Promise<void> {
    const known = ids.filter(isContainerId);
    await this.#during(signal, (until) => removeContainers(this.#cli, known, until));
    for (const id of known) this.#cgroups.delete(id);
    await this.#dataRoots.releaseIds(new Set(known));
  }

  async inspect(id: string, signal: AbortSignal): Promise<RuntimeContainer | undefined> {
    if (!isContainerId(id)) return undefined;
    const args = ["container", "inspect", "--format", INSPECT_FORMAT, "--", id];
    const inspect = (until: AbortSignal) => this.#cli.call(args, { signal: until });
    const answer = await this.#during(signal, inspect).catch(unlessNotFound);
    return answer && parseInspect(answer.stdout);
  }

  hasImage(reference: string, signal: AbortSignal): Promise<boolean> {
    return this.#during(signal, (until) => this.#images.has(reference, until));
  }

  pull(reference: string, signal: AbortSignal, options?: PullOptions): Promise<void> {
    return this.#during(signal, (until) => this.#images.pull(reference, until, options));
  }

  listImages(signal: AbortSignal): Promise<readonly string[]> {
    return this.#during(signal, (until) => this.#images.list(until));
  }

  removeImage(reference: string, signal: AbortSignal): Promise<"removed" | "in-use" | "absent"> {
    return this.#during(signal, (until) => this.#images.remove(reference, until));
  }

  imageStorage(signal: AbortSignal): Promise<string | undefined> {
    return this.#during(signal, (until) => this.#images.storage(until));
  }

  async ownLayer(id: string, signal: AbortSignal): Promise<string | undefined> {
    const { pid } = (await this.inspect(id, signal)) ?? {};
    return pid === undefined ? undefined : findOwnLayer(pid);
  }

  events(signal: AbortSignal): AsyncIterable<RuntimeEvent> {
    const { namespace, clock } = this.#options;
    const source = { cli: this.#cli, namespace, clock };
    return streamWithLinkedSignal([signal, this.#closing.signal], (until) => streamEvents(source, until));
  }

  exec(id: string, options: RuntimeExecOptions, signal: AbortSignal): RuntimeExec {
    const dependencies = {
      cli: this.#cli,
      clock: this.#options.clock,
      limit: this.#execs,
      starts: this.#execStarts,
      privateDir: this.#options.stateDir,
      cgroupOf: (of: string) => this.#cgroupOf(of),
    };
    const { signal: until, unlink } = linkSignals(signal, this.#closing.signal);
    const exec = startExec(dependencies, id, options, until);
    exec.exitCode.then(unlink, unlink);
    return exec;
  }

  async usage(id: string): Promise<ContainerUsage | undefined> {
    if (!isContainerId(id)) return undefined;
    const cgroup = await this.#cgroupOf(id);
    const usage = cgroup && readUsage(cgroup);
    if (usage === undefined) this.#cgroups.delete(id);
    return usage;
  }

  async detailedUsage(id: string): Promise<DetailedUsage | undefined> {
    if (!isContainerId(id)) return undefined;
    const cgroup = await this.#cgroupOf(id);
    return cgroup && readDetailedUsage(cgroup);
  }

  async oomKills(id: string): Promise<number> {
    if (!isContainerId(id)) return 0;
    const cgroup = this.#cgroups.get(id) ?? guessCgroup(this.#options.namespace, id);
    return cgroup === undefined ? 0 : readOomKills(cgroup);
  }

  async close(): Promise<void> {
    this.#closing.abort();
  }

  /** Lists this instance's containers. Fails as a whole if a container vanishes during the listing. */
  async #list(signal: AbortSignal): Promise<readonly RuntimeContainer[]> {
    const filter = `--filter=label=${INSTANCE_LABEL}=${this.#options.instance}`;
    const args = ["ps", "--all", "--no-trunc", filter, "--format", LIST_FORMAT];
    for (let left = LIST_TRIES; ; left -= 1) {
      try {
        return parseList((await this.#cli.call(args, { signal })).stdout);
      } catch (error) {
        if (left <= 1 || !(error instanceof RuntimeError) || error.code !== "NOT_FOUND") throw error;
      }
    }
  }

  /** Returns the ids of all containers in the namespace, which other agents may share. */
  async #listAllIds(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const { stdout } = await this.#cli.call(["ps", "--all", "--quiet", "--no-trunc"], { signal });
    return new Set(stdout.split("\n"));
  }

  async #cgroupOf(id: string): Promise<ContainerCgroup | undefined> {
    const known = this.#cgroups.get(id);
    if (known !== undefined) return known;
    const found = guessCgroup(this.#options.namespace, id) ?? (await this.#cgroupByProcess(id));
    if (found !== undefined) this.#cgroups.set(id, found);
    return found;
  }

  async #cgroupByProcess(id: string): Promise<ContainerCgroup | undefined> {
    const { pid } = (await this.inspect(id, this.#closing.signal)) ?? {};
    return pid === undefined ? undefined : findCgroup(pid);
  }

  /** Runs the work with a signal that also aborts when the runtime closes. */
  #during<T>(signal: AbortSignal, work: (until: AbortSignal) => Promise<T>): Promise<T> {
    return withLinkedSignal([signal, this.#closing.signal], work);
  }
}

function unlessNotFound(error: unknown): undefined {
  if (error instanceof RuntimeError && error.code === "NOT_FOUND") return undefined;
  throw error;
}
