import type { Clock } from "../clock.ts";
import { checkNonRoot, checkSecurity } from "./check-security.ts";
import { checkSignalName } from "./check-signal-name.ts";
import { EventQueue } from "./event-queue.ts";
import { type FakeExecScript, playExec } from "./fake-exec.ts";
import { FakeFaults } from "./fake-faults.ts";
import { normalizeImage, registryName, registryOf } from "./image-reference.ts";
import {
  type ContainerRuntime,
  type ContainerSpec,
  type ContainerUsage,
  type DetailedUsage,
  type PullOptions,
  type RegistryLogin,
  type RuntimeContainer,
  RuntimeError,
  type RuntimeEvent,
  type RuntimeExec,
  type RuntimeExecOptions,
  type RuntimeVersion,
} from "./runtime.ts";

/** The behaviour of a started container. Default: it runs until it is stopped. */
export interface FakeProgram {
  /** If set, the program ends by itself with this code, after `afterMs` (default: 0). */
  readonly exitCode?: number;
  readonly afterMs?: number;
  /** Whether the program ignores the stop signal, so that only SIGKILL ends it. */
  readonly ignoresStop?: boolean;
  /** The time between the stop signal and the program's end. */
  readonly stopMs?: number;
  /** The error with which the runtime refuses to start it. */
  readonly startError?: string;
}

export interface FakeContainer extends RuntimeContainer {
  readonly spec: ContainerSpec;
}

interface Entry {
  view: FakeContainer;
  readonly program: FakeProgram;
  readonly ended: Promise<void>;
  readonly end: () => void;
}

const LAYER_BYTES = 1_000_000;
const SIGTERM_EXIT = 143;
const SIGKILL_EXIT = 137;
const SIGNAL_EXIT_BASE = 128;

/** A ContainerRuntime in memory, on the test's clock. It passes the same contract suite as the real runtime. */
export class FakeRuntime implements ContainerRuntime {
  readonly faults: FakeFaults;
  /** The behaviour of programs, by the first word of the command, or by image if there is no command. */
  readonly programs = new Map<string, FakeProgram>();
  /** The behaviour of execs, by the first word of the command. Other commands exit with 127. */
  readonly execs = new Map<string, FakeExecScript>();
  /** The images in the local store, as full references. */
  readonly images = new Set<string>();
  /** The registry's answers to pulls, by full reference. Other images are IMAGE_NOT_FOUND. */
  readonly registry = new Map<string, "ok" | "hangs" | RuntimeError>();
  /** The logins that registries require, by host. Other registries require none. */
  readonly logins = new Map<string, { readonly username: string; readonly password: string }>();
  /** The USER of images, by full reference. Other images have none. */
  readonly imageUsers = new Map<string, string>();
  readonly usages = new Map<string, ContainerUsage>();
  readonly #outOfMemory = new Set<string>();
  readonly #clock: Clock;
  readonly #containers = new Map<string, Entry>();
  readonly #listeners = new Set<EventQueue>();
  #made = 0;

  constructor(options: { readonly clock: Clock; readonly images?: readonly string[] }) {
    this.#clock = options.clock;
    this.faults = new FakeFaults(options.clock);
    for (const image of options.images ?? []) this.images.add(normalizeImage(image));
  }

  get containers(): readonly FakeContainer[] {
    return [...this.#containers.values()].map((it) => it.view);
  }

  /** Ends the container's program by itself. */
  exit(id: string, exitCode: number): void {
    const entry = this.#containers.get(id);
    if (entry?.view.state !== "running") return;
    const finishedAtMs = this.#clock.nowMs();
    const { pid: _, ...rest } = entry.view;
    entry.view = { ...rest, state: "exited", exitCode, finishedAtMs };
    entry.end();
    this.#emit({ type: "exited", containerId: id, exitCode, atMs: finishedAtMs });
  }

  /** Kills the container for lack of memory. With `silently`, without events, as if no one had subscribed yet. */
  outOfMemory(id: string, { silently = false } = {}): void {
    this.#outOfMemory.add(id);
    if (!silently) this.#emit({ type: "oom", containerId: id });
    this.exit(id, SIGKILL_EXIT);
  }

  /** Removes all containers without events, as a reboot of the host does. */
  loseAll(): void {
    this.#containers.clear();
  }

  /** Breaks the event source for all subscribers. */
  breakEvents(): void {
    for (const queue of this.#listeners)
      queue.fail(new RuntimeError("UNAVAILABLE", "the event source broke", { retryable: true }));
    this.#listeners.clear();
  }

  version(signal: AbortSignal): Promise<RuntimeVersion> {
    return this.faults.during("version", "", signal, () => ({ containerd: "fake", nerdctl: "fake" }));
  }

  list(signal: AbortSignal): Promise<readonly RuntimeContainer[]> {
    return this.faults.during("list", "", signal, () => this.containers.map(publicView));
  }

  run(spec: ContainerSpec, signal: AbortSignal): Promise<{ readonly id: string }> {
    return this.faults.during("run", spec.name, signal, () => {
      const image = normalizeImage(spec.image);
      checkSecurity(spec);
      if (this.containers.some((it) => it.name === spec.name)) {
        throw new RuntimeError("ALREADY_EXISTS", `there is a container ${spec.name} already`, {
          retryable: false,
        });
      }
      if (!this.images.has(image))
        throw new RuntimeError("IMAGE_NOT_FOUND", `${image} is not here`, { retryable: true });
      if (spec.security?.runAsNonRoot && spec.user?.uid === undefined)
        checkNonRoot(spec.image, this.imageUsers.get(image) ?? "");
      const program = this.programs.get(spec.command[0] ?? spec.image) ?? {};
      if (program.startError !== undefined)
        throw new RuntimeError("START_FAILED", program.startError, { retryable: false });
      return { id: this.#start(spec, image, program) };
    });
  }

  stop(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    return this.faults.during("stop", id, signal, async () => {
      const entry = this.#containers.get(id);
      if (entry?.view.state !== "running") return;
      const { ignoresStop = false, stopMs = 0 } = entry.program;
      const obeys = !ignoresStop && graceMs > 0 && stopMs <= graceMs;
      await this.faults.pass(obeys ? stopMs : graceMs, signal);
      this.exit(id, obeys ? SIGTERM_EXIT : SIGKILL_EXIT);
    });
  }

  kill(id: string, signalName: string, signal: AbortSignal): Promise<void> {
    return this.faults.during("kill", `${id} ${signalName}`, signal, () => {
      const number = checkSignalName(signalName);
      const entry = this.#containers.get(id);
      if (entry?.view.state !== "running")
        throw new RuntimeError("NOT_FOUND", `container ${id} is not running`, { retryable: false });
      if (signalName === "SIGKILL" || !entry.program.ignoresStop) this.exit(id, SIGNAL_EXIT_BASE + number);
    });
  }

  remove(ids: readonly string[], signal: AbortSignal): Promise<void> {
    return this.faults.during("remove", ids.join(","), signal, () => {
      for (const id of ids) {
        this.exit(id, SIGKILL_EXIT);
        if (this.#containers.delete(id)) this.#emit({ type: "removed", containerId: id });
      }
    });
  }

  inspect(id: string, signal: AbortSignal): Promise<RuntimeContainer | undefined> {
    return this.faults.during("inspect", id, signal, () => {
      const entry = this.#containers.get(id);
      return entry && publicView(entry.view);
    });
  }

  hasImage(reference: string, signal: AbortSignal): Promise<boolean> {
    return this.faults.during("hasImage", reference, signal, () =>
      this.images.has(normalizeImage(reference)),
    );
  }

  pull(reference: string, signal: AbortSignal, options: PullOptions = {}): Promise<void> {
    return this.faults.during("pull", reference, signal, async () => {
      const image = normalizeImage(reference);
      this.#checkLogin(image, options.credentials ?? []);
      const answer = this.registry.get(image);
      options.onProgress?.({ layersDone: 0, layers: 1, bytesDone: 0, bytesTotal: LAYER_BYTES });
      if (answer === "hangs") await this.faults.pass(Number.MAX_SAFE_INTEGER, signal);
      if (answer instanceof RuntimeError) throw answer;
      if (answer === undefined)
        throw new RuntimeError("IMAGE_NOT_FOUND", `${image}: not found`, { retryable: false });
      options.onProgress?.({ layersDone: 1, layers: 1, bytesDone: LAYER_BYTES, bytesTotal: LAYER_BYTES });
      this.images.add(image);
    });
  }

  listImages(signal: AbortSignal): Promise<readonly string[]> {
    return this.faults.during("listImages", "", signal, () => [...this.images]);
  }

  removeImage(reference: string, signal: AbortSignal): Promise<"removed" | "in-use" | "absent"> {
    return this.faults.during("removeImage", reference, signal, () => {
      const image = normalizeImage(reference);
      if (this.containers.some((it) => it.image === image)) return "in-use";
      return this.images.delete(image) ? "removed" : "absent";
    });
  }

  imageStorage(signal: AbortSignal): Promise<string | undefined> {
    return this.faults.during("imageStorage", "", signal, () => "/");
  }

  ownLayer(id: string, signal: AbortSignal): Promise<string | undefined> {
    const running = this.#containers.get(id)?.view.state === "running";
    return this.faults.during("ownLayer", id, signal, () => (running ? `/layers/${id}` : undefined));
  }

  async *events(signal: AbortSignal): AsyncGenerator<RuntimeEvent, void, undefined> {
    if (signal.aborted) return;
    const queue = new EventQueue();
    const stop = () => queue.close();
    queue.push({ type: "listening" });
    this.#listeners.add(queue);
    signal.addEventListener("abort", stop, { once: true });
    try {
      yield* queue.read();
    } finally {
      signal.removeEventListener("abort", stop);
      this.#listeners.delete(queue);
    }
  }

  exec(id: string, options: RuntimeExecOptions, signal: AbortSignal): RuntimeExec {
    const entry = this.#containers.get(id);
    const running = entry?.view.state === "running";
    const word = options.command[0] ?? "";
    const missing = { stderr: `exec: ${JSON.stringify(word)}: not found\n`, exitCode: 127 };
    const script = running ? (this.execs.get(word) ?? missing) : undefined;
    return playExec(script, options, signal, entry?.ended ?? Promise.resolve());
  }

  async usage(id: string): Promise<ContainerUsage | undefined> {
    if (this.#containers.get(id)?.view.state !== "running") return undefined;
    return (
      this.usages.get(id) ?? {
        cpuNanos: 1_000_000,
        memoryBytes: 1_000_000,
        workingSetBytes: 900_000,
        oomKills: 0,
      }
    );
  }

  async detailedUsage(id: string): Promise<DetailedUsage | undefined> {
    const usage = await this.usage(id);
    if (usage === undefined) return undefined;
    const { cpuNanos, memoryBytes, workingSetBytes } = usage;
    const parts = { userNanos: cpuNanos, systemNanos: 0, rssBytes: memoryBytes, cacheBytes: 0 };
    const process = {
      startTicks: 1,
      userNanos: cpuNanos,
      systemNanos: 0,
      rssBytes: memoryBytes,
      swapBytes: 0,
    };
    const pid = this.#containers.get(id)?.view.pid ?? 0;
    return { cpuNanos, memoryBytes, workingSetBytes, ...parts, processes: [{ pid, ...process }] };
  }

  async oomKills(id: string): Promise<number> {
    return this.#containers.has(id) && this.#outOfMemory.has(id) ? 1 : 0;
  }

  async close(): Promise<void> {
    for (const queue of this.#listeners) queue.close();
  }

  #checkLogin(image: string, credentials: readonly RegistryLogin[]): void {
    const registry = registryOf(image);
    const desired = this.logins.get(registry);
    const given = credentials.filter((it) => registryName(it.server) === registry);
    const fits = given.some((it) => it.username === desired?.username && it.password === desired.password);
    if (desired !== undefined && !fits)
      throw new RuntimeError("IMAGE_DENIED", `${image}: denied`, { retryable: false });
  }

  #start(spec: ContainerSpec, image: string, program: FakeProgram): string {
    this.#made += 1;
    const id = this.#made.toString(16).padStart(64, "0");
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const { name, labels } = spec;
    const state = { state: "running", startedAtMs: this.#clock.nowMs(), pid: 1000 + this.#made } as const;
    this.#containers.set(id, { view: { id, name, labels, image, spec, ...state }, program, ended, end });
    this.#emit({ type: "started", containerId: id });
    const { exitCode, afterMs = 0 } = program;
    if (exitCode !== undefined) this.#clock.schedule(afterMs, () => this.exit(id, exitCode));
    return id;
  }

  #emit(event: RuntimeEvent): void {
    for (const queue of this.#listeners) queue.push(event);
  }
}

function publicView({ spec: _, ...container }: FakeContainer): RuntimeContainer {
  return container;
}
