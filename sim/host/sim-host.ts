import type { VirtualClock } from "@forage/common/virtual-clock";
import { FakeNetworkHost } from "../../agent/src/network/fake.ts";
import { type ContainerSpec, RuntimeError, type RuntimeEvent } from "../../agent/src/runtime/runtime.ts";
import { FakeVolumes } from "../../agent/src/volumes/fake.ts";
import { SimCalls } from "./sim-calls.ts";
import type { SimContainer } from "./sim-container.ts";

/** Receives events as they happen. */
export interface SimWitness {
  started(container: SimContainer): void;
  ended(container: SimContainer): void;
  /** Called when a running container is ordered to stop, or is removed. */
  killed(container: SimContainer, how: "stop" | "remove"): void;
  answered(container: SimContainer): void;
  released(podUid: string): void;
}

/** The images and programs of a simulated world. */
export interface SimPrograms {
  /** Returns the time that a started program runs, and its exit code; `undefined` if it runs until it is stopped. */
  endOf(spec: ContainerSpec): { readonly afterMs: number; readonly exitCode: number } | undefined;
  isUnready(spec: ContainerSpec): boolean;
  pullMs(image: string): number;
  isInRegistry(image: string): boolean;
  isRegistryUp(): boolean;
}

const PULL_MS = 500;
const INIT_MAX_MS = 2_000;
const JOB_MAX_MS = 60_000;
const WARM_UP_MAX_MS = 4_000;
const STOP_MAX_MS = 2_000;

/** A host as the agent sees it. It survives agents, and has the faults of runtimes and networks. */
export class SimHost {
  readonly clock: VirtualClock;
  readonly calls: SimCalls;
  readonly containers = new Map<string, SimContainer>();
  readonly network = new FakeNetworkHost(() => this.next());
  readonly volumes = new FakeVolumes();
  readonly directories = new Set<string>();
  readonly logs = new Set<string>();
  readonly images = new Set<string>();
  readonly registry = new Set<string>();
  readonly listeners = new Set<(event: RuntimeEvent | undefined) => void>();
  registryUp = true;
  witness: SimWitness | undefined;
  readonly programs: SimPrograms;
  /** The offset by which the host's wall clock was set. */
  wallJumpMs = 0;
  #count = 0;

  /**
   * By default of `programs`, containers run by the first word of their command, and the registry has the images in
   * `registry`.
   */
  constructor(clock: VirtualClock, random: () => number, programs?: SimPrograms) {
    this.clock = clock;
    this.calls = new SimCalls(clock, random);
    this.programs = programs ?? {
      endOf: (spec) => this.#endByCommand(spec),
      isUnready: () => false,
      pullMs: () => PULL_MS,
      isInRegistry: (image) => this.registry.has(image),
      isRegistryUp: () => this.registryUp,
    };
  }

  running(): readonly SimContainer[] {
    return [...this.containers.values()].filter((it) => it.state === "running");
  }

  /** Returns a number that was never returned before. */
  next(): number {
    this.#count += 1;
    return this.#count;
  }

  /** Ends a container, from outside or by itself. */
  end(id: string, exitCode: number): void {
    const container = this.containers.get(id);
    if (container?.state !== "running") return;
    const atMs = this.#wallMs();
    container.state = "exited";
    container.exitCode = exitCode;
    container.finishedAtMs = atMs;
    this.witness?.ended(container);
    this.#emit({ type: "exited", containerId: id, exitCode, atMs });
  }

  reboot(): void {
    for (const container of this.containers.values())
      if (container.state === "running") container.state = "created";
    this.network.reboot();
  }

  start(spec: ContainerSpec): { id: string } {
    if ([...this.containers.values()].some((it) => it.spec.name === spec.name)) {
      throw new RuntimeError("ALREADY_EXISTS", `name ${spec.name} is taken`, { retryable: false });
    }
    if (!this.images.has(spec.image)) {
      throw new RuntimeError("IMAGE_NOT_FOUND", `${spec.image} is not here`, { retryable: false });
    }
    const namespaces = this.network.sandboxes.values().map((it) => it.namespacePath);
    if (!namespaces.some((it) => it === spec.networkNamespace)) {
      throw new RuntimeError("UNKNOWN", `${spec.networkNamespace} doesn't exist`, { retryable: true });
    }
    const id = `c${this.next()}`;
    const fails = this.calls.chance(this.calls.faults.startFails);
    const made = aContainer(id, spec, fails ? "created" : "running", this.#wallMs());
    const warmAtMs = this.clock.monotonicMs() + this.calls.random() * WARM_UP_MAX_MS;
    this.containers.set(id, { ...made, warmAtMs, unready: this.programs.isUnready(spec) });
    if (fails) throw new RuntimeError("START_FAILED", "no such file", { retryable: false });
    const container = this.containers.get(id) ?? made;
    this.witness?.started(container);
    this.#runProgram(container);
    this.#emit({ type: "started", containerId: id });
    return { id };
  }

  /** Sends the stop signal, and resolves when the container has ended, which takes a while. */
  async stop(id: string, graceMs: number): Promise<void> {
    const container = this.containers.get(id);
    if (container?.state !== "running") return;
    this.witness?.killed(container, "stop");
    await this.clock.sleep(Math.min(graceMs, this.calls.random() * STOP_MAX_MS));
    this.end(id, 143);
  }

  remove(id: string): void {
    const container = this.containers.get(id);
    if (container?.state === "running") this.witness?.killed(container, "remove");
    this.end(id, 137);
    if (this.containers.delete(id)) this.#emit({ type: "removed", containerId: id });
  }

  #runProgram(container: SimContainer): void {
    const { id, spec } = container;
    const end = this.programs.endOf(spec);
    container.endsByItself = end !== undefined;
    if (end !== undefined) this.clock.schedule(end.afterMs, () => this.end(id, end.exitCode));
  }

  /** Returns when a program ends, by its command. Programs named `init` and `job` end after a while, others do not. */
  #endByCommand({
    command,
  }: ContainerSpec): { readonly afterMs: number; readonly exitCode: number } | undefined {
    const word = command[0];
    if (word !== "init" && word !== "job") return undefined;
    const { calls } = this;
    const afterMs = calls.random() * (word === "init" ? INIT_MAX_MS : JOB_MAX_MS);
    return {
      afterMs,
      get exitCode() {
        return calls.chance(calls.faults.programFails) ? 1 : 0;
      },
    };
  }

  #wallMs(): number {
    return this.clock.nowMs() + this.wallJumpMs;
  }

  #emit(event: RuntimeEvent): void {
    const { calls, clock } = this;
    for (const listener of this.listeners) {
      if (calls.chance(calls.faults.streamBreaks)) listener(undefined);
      else if (!calls.chance(calls.faults.eventLost))
        clock.schedule(calls.random() * 30, () => listener(event));
    }
  }
}

function aContainer(
  id: string,
  spec: ContainerSpec,
  state: SimContainer["state"],
  startedAtMs: number,
): SimContainer {
  return {
    id,
    spec,
    state,
    exitCode: 0,
    startedAtMs,
    finishedAtMs: 0,
    warmAtMs: 0,
    unready: false,
    broken: false,
    isUp: false,
    postStart: "none",
    endsByItself: false,
    postStarts: 0,
    postStartEndedAtMs: 0,
    preStopTried: false,
    excused: false,
  };
}
