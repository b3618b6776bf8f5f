import type {
  KnownPod,
  PodNetwork,
  PodSandbox,
  PortMapping,
  PortRequest,
} from "../../src/network/network.ts";
import { isHostNetwork, NetworkError } from "../../src/network/network.ts";
import { CONTAINER_LABEL, POD_UID_LABEL } from "../../src/pods/container-name.ts";
import type { PodFiles } from "../../src/pods/pod-files.ts";
import {
  type ContainerRuntime,
  type ContainerSpec,
  type RuntimeContainer,
  RuntimeError,
  type RuntimeEvent,
} from "../../src/runtime/runtime.ts";
import type { SimClock } from "./sim-clock.ts";

/** Chances in [0, 1] for each call or event. */
export interface SimFaults {
  callFails: number;
  /** The caller is told of a time-out; the call takes effect or not, at once or a little later. */
  callTimesOut: number;
  eventLost: number;
  streamBreaks: number;
  startFails: number;
}

export const NO_FAULTS: SimFaults = {
  callFails: 0,
  callTimesOut: 0,
  eventLost: 0,
  streamBreaks: 0,
  startFails: 0,
};

interface SimContainer {
  readonly id: string;
  readonly spec: ContainerSpec;
  state: "created" | "running" | "exited";
  exitCode: number;
  startedAtMs: number;
  finishedAtMs: number;
}

const TIME_LIMIT_MS = 20_000;
// Containerd may go on with what a killed client had asked it for; a network plugin that was killed is over.
const LATE_EFFECT_MAX_MS = 300;

/** A host as the agent finds it: it outlives agents, and does what runtimes and networks do on bad days. */
export class SimHost {
  readonly clock: SimClock;
  readonly #random: () => number;
  faults: SimFaults = { ...NO_FAULTS };
  readonly containers = new Map<string, SimContainer>();
  readonly sandboxes = new Map<string, string>();
  readonly published = new Map<string, readonly PortMapping[]>();
  readonly ports = new Map<string, readonly PortMapping[]>();
  readonly directories = new Set<string>();
  readonly images = new Set<string>();
  readonly registry = new Set<string>();
  registryUp = true;
  pulls = 0;
  /** Told before a running container is stopped or removed by a call. */
  onKill: (container: SimContainer) => void = () => undefined;
  onRunning: () => void = () => undefined;
  readonly #listeners = new Set<(event: RuntimeEvent | undefined) => void>();
  #count = 0;

  constructor(clock: SimClock, random: () => number) {
    this.clock = clock;
    this.#random = random;
  }

  running(): readonly SimContainer[] {
    return [...this.containers.values()].filter((it) => it.state === "running");
  }

  /** Ends a container from outside. */
  crash(id: string, exitCode: number): void {
    const container = this.containers.get(id);
    if (container?.state !== "running") return;
    container.state = "exited";
    container.exitCode = exitCode;
    container.finishedAtMs = this.clock.nowMs();
    this.#emit({ type: "exited", containerId: id, exitCode, atMs: this.clock.nowMs() });
  }

  reboot(): void {
    for (const container of this.containers.values())
      if (container.state === "running") container.state = "created";
    this.sandboxes.clear();
    this.published.clear();
  }

  /** One agent's way to the host. After `cut` its calls neither begin nor end, but what had begun goes on. */
  session(): { runtime: ContainerRuntime; network: PodNetwork; files: PodFiles; cut: () => void } {
    const line = { cut: false };
    return {
      runtime: this.#runtime(line),
      network: this.#network(line),
      files: this.#files(line),
      cut: () => {
        line.cut = true;
      },
    };
  }

  #chance(probability: number): boolean {
    return probability > 0 && this.#random() < probability;
  }

  /** Does `effect` after a while, or fails as the faults have it. */
  async #call<Result>(line: { cut: boolean }, fail: Fail, effect: () => Result): Promise<Result> {
    if (line.cut) return never();
    await this.clock.sleep(5 + this.#random() * 200);
    if (this.#chance(this.faults.callFails)) {
      if (line.cut) return never();
      throw fail("UNAVAILABLE");
    }
    if (this.#chance(this.faults.callTimesOut)) {
      const effectful = this.#random();
      const doIt = () => {
        try {
          effect();
        } catch {}
      };
      if (effectful < 0.4) doIt();
      await this.clock.sleep(TIME_LIMIT_MS);
      if (line.cut) return never();
      if (effectful > 0.8 && fail === runtimeFailure)
        this.clock.after(this.#random() * LATE_EFFECT_MAX_MS, doIt);
      if (line.cut) return never();
      throw fail("TIMEOUT");
    }
    // The effect is the host's; only the answer is lost when the agent is gone.
    let result: Result;
    try {
      result = effect();
    } catch (error) {
      if (line.cut) return never();
      throw error;
    }
    await this.clock.sleep(this.#random() * 20);
    return line.cut ? never() : result;
  }

  #runtime(line: { cut: boolean }): ContainerRuntime {
    const call = <Result>(effect: () => Result) => this.#call(line, runtimeFailure, effect);
    return {
      version: () => call(() => ({ containerd: "1.0", nerdctl: "2.0" })),
      list: () => call(() => [...this.containers.values()].map(listed)),
      run: (spec) => call(() => this.#start(spec)),
      stop: async (id, graceMs) => {
        await call(() => this.#kill(id));
        await this.clock.sleep(Math.min(graceMs, 100));
      },
      remove: (ids) =>
        call(() => {
          for (const id of ids) this.#remove(id);
        }),
      inspect: (id) =>
        call(() => {
          const found = this.containers.get(id);
          return found === undefined
            ? undefined
            : { ...listed(found), ...(found.state === "exited" && { exitCode: found.exitCode }) };
        }),
      hasImage: (reference) => call(() => this.images.has(reference)),
      pull: async (reference) => {
        this.pulls += 1;
        await this.clock.sleep(500);
        await call(() => {
          if (!this.registryUp)
            throw new RuntimeError("REGISTRY_UNAVAILABLE", "no route to registry", { retryable: true });
          if (!this.registry.has(reference)) {
            throw new RuntimeError("IMAGE_NOT_FOUND", `${reference} not found`, { retryable: false });
          }
          this.images.add(reference);
        });
      },
      listImages: () => call(() => [...this.images]),
      removeImage: (reference) => call(() => (this.images.delete(reference) ? "removed" : "absent")),
      imageStorage: async () => undefined,
      ownLayer: async () => undefined,
      events: (signal) => this.#events(line, signal),
      exec: () => {
        throw new Error("not simulated");
      },
      usage: async () => undefined,
      close: async () => undefined,
    };
  }

  #start(spec: ContainerSpec): { id: string } {
    if ([...this.containers.values()].some((it) => it.spec.name === spec.name)) {
      throw new RuntimeError("ALREADY_EXISTS", `name ${spec.name} is taken`, { retryable: false });
    }
    if (!this.images.has(spec.image)) {
      throw new RuntimeError("IMAGE_NOT_FOUND", `${spec.image} is not here`, { retryable: false });
    }
    if (![...this.sandboxes.values()].includes(spec.networkNamespace)) {
      throw new RuntimeError("UNKNOWN", `${spec.networkNamespace} doesn't exist`, { retryable: true });
    }
    this.#count += 1;
    const id = `c${this.#count}`;
    const nowMs = this.clock.nowMs();
    const fails = this.#chance(this.faults.startFails);
    const made: SimContainer = {
      id,
      spec,
      state: fails ? "created" : "running",
      exitCode: 0,
      startedAtMs: nowMs,
      finishedAtMs: 0,
    };
    this.containers.set(id, made);
    if (fails) throw new RuntimeError("START_FAILED", "no such file", { retryable: false });
    this.onRunning();
    this.#emit({ type: "started", containerId: id });
    return { id };
  }

  #kill(id: string): void {
    const container = this.containers.get(id);
    if (container?.state !== "running") return;
    this.onKill(container);
    this.crash(id, 143);
  }

  #remove(id: string): void {
    this.#kill(id);
    if (this.containers.delete(id)) this.#emit({ type: "removed", containerId: id });
  }

  #emit(event: RuntimeEvent): void {
    for (const listener of this.#listeners) {
      if (this.#chance(this.faults.streamBreaks)) listener(undefined);
      else if (!this.#chance(this.faults.eventLost)) {
        this.clock.after(this.#random() * 30, () => listener(event));
      }
    }
  }

  async *#events(line: { cut: boolean }, signal: AbortSignal): AsyncGenerator<RuntimeEvent> {
    const queue: (RuntimeEvent | undefined)[] = [{ type: "listening" }];
    let wake: (() => void) | undefined;
    const listener = (event: RuntimeEvent | undefined) => {
      queue.push(event);
      wake?.();
    };
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => wake?.(), { once: true });
    try {
      while (!signal.aborted && !line.cut) {
        while (queue.length > 0) {
          const event = queue.shift();
          if (line.cut) return;
          if (event === undefined) throw new RuntimeError("UNAVAILABLE", "stream broke", { retryable: true });
          yield event;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (queue.length > 0 || signal.aborted) resolve();
        });
      }
    } finally {
      this.#listeners.delete(listener);
    }
  }

  #network(line: { cut: boolean }): PodNetwork {
    const call = <Result>(effect: () => Result) => this.#call(line, networkFailure, effect);
    return {
      start: (known) => call(() => this.#startNetwork(known)),
      attach: (podUid) =>
        call((): PodSandbox => {
          const known = this.sandboxes.get(podUid);
          if (known === undefined) this.#count += 1;
          const namespacePath = known ?? `/run/netns/${podUid}-${this.#count}`;
          this.sandboxes.set(podUid, namespacePath);
          return { podUid, namespacePath, address: "10.0.0.1" };
        }),
      check: async (sandbox) => this.sandboxes.get(sandbox.podUid) === sandbox.namespacePath,
      findLost: async (sandboxes) =>
        sandboxes.filter((it) => !isHostNetwork(it) && this.sandboxes.get(it.podUid) !== it.namespacePath),
      detach: (podUid) =>
        call(() => {
          this.sandboxes.delete(podUid);
          this.published.delete(podUid);
          this.ports.delete(podUid);
        }),
      allocatePorts: async (podUid, wanted) => this.#allocate(podUid, wanted),
      takeHostPorts: async (_, wanted) => wanted.map((it) => ({ ...it, hostPort: it.containerPort })),
      publish: (sandbox, mappings) => call(() => void this.published.set(sandbox.podUid, mappings)),
      unpublish: (podUid) => call(() => void this.published.delete(podUid)),
      close: async () => undefined,
    };
  }

  #startNetwork(known: readonly KnownPod[]): void {
    const uids = new Set(known.map((it) => it.podUid));
    for (const uid of [...this.sandboxes.keys()]) if (!uids.has(uid)) this.sandboxes.delete(uid);
    this.ports.clear();
    for (const { podUid, ports } of known) if (ports.length > 0) this.ports.set(podUid, ports);
    this.published.clear();
    for (const { podUid, ports } of known) if (this.sandboxes.has(podUid)) this.published.set(podUid, ports);
  }

  #allocate(podUid: string, wanted: readonly PortRequest[]): readonly PortMapping[] {
    const held = this.ports.get(podUid);
    if (held !== undefined) return held;
    const taken = new Set([...this.ports.values()].flat().map((it) => it.hostPort));
    let next = 20_000;
    const made = wanted.map((request) => {
      while (taken.has(next)) next += 1;
      taken.add(next);
      return { ...request, hostPort: next };
    });
    this.ports.set(podUid, made);
    return made;
  }

  #files(line: { cut: boolean }): PodFiles {
    return {
      prepare: async (podUid, container, attempt) => {
        if (line.cut) return never();
        this.directories.add(podUid);
        return { logFile: `/logs/${podUid}/${container}/${attempt}.log` };
      },
      lastLines: async () => (line.cut ? never() : "last words"),
      remove: async (podUid) => {
        if (line.cut) return never();
        this.directories.delete(podUid);
      },
    };
  }
}

type Fail = (code: "UNAVAILABLE" | "TIMEOUT") => Error;

function runtimeFailure(code: "UNAVAILABLE" | "TIMEOUT"): Error {
  return new RuntimeError(code, `simulated ${code}`, { retryable: true });
}

function networkFailure(code: "UNAVAILABLE" | "TIMEOUT"): Error {
  return new NetworkError(code === "TIMEOUT" ? "TIMEOUT" : "SETUP_FAILED", `simulated ${code}`, {
    retryable: true,
  });
}

function never<Result>(): Promise<Result> {
  return new Promise(() => undefined);
}

function listed(container: SimContainer): RuntimeContainer {
  const { id, spec, state, startedAtMs } = container;
  return { id, name: spec.name, labels: spec.labels, image: spec.image, state, startedAtMs };
}

/** Pod and container a simulated container is for. */
export function keyOf(container: { readonly spec: ContainerSpec }): string {
  return `${container.spec.labels[POD_UID_LABEL]}/${container.spec.labels[CONTAINER_LABEL]}`;
}
