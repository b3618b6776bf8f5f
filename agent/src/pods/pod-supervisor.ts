import { Semaphore } from "@forage/common/semaphore";
import { pause } from "../clock.ts";
import type { PodSandbox } from "../network/network.ts";
import { ProbeRunner } from "../probes/probe-runner.ts";
import type { LimitedRoot } from "../runtime/root-disk-watch.ts";
import { HOST_NETWORK } from "../runtime/runtime.ts";
import { hostSandbox } from "./act/run-step.ts";
import { afterRecovery } from "./after-recovery.ts";
import type { PodStatus } from "./decide/pod-status.ts";
import type { PodView } from "./decide/pod-view.ts";
import { type ContainerRun, exitCodeOf, type FoundContainer, findContainer } from "./find-container.ts";
import { type HostUse, hostUseOf } from "./host-use.ts";
import { ImageStore } from "./image-store.ts";
import { knownPods, type RememberedPod } from "./known-pods.ts";
import { limitedRootsOf } from "./limited-roots.ts";
import { orphanPod } from "./orphan-pod.ts";
import { EMPTY_MEMORY, type Pod, type PodMemory } from "./pod.ts";
import { allContainers } from "./pod-containers.ts";
import type { PodDependencies } from "./pod-dependencies.ts";
import { PodLoop } from "./pod-loop.ts";
import { retryUntilDone } from "./retry-until-done.ts";
import { RuntimeObserver } from "./runtime-observer.ts";
import type { HostPart, RecordedPod, SupervisorOptions } from "./supervisor-options.ts";

// A healthy host takes tenths of a second.
const RECOVER_WAIT_MS = 3_000;

/**
 * Runs each pod of this host in a loop of its own, so that no pod waits for another. `replace` and `apply` set the
 * assignment, which is only stored until `start` has contacted the runtime and the network.
 */
export class PodSupervisor {
  readonly #options: SupervisorOptions;
  readonly #dependencies: PodDependencies;
  readonly #observer: RuntimeObserver;
  readonly #probes: ProbeRunner;
  readonly #loops = new Map<string, PodLoop>();
  /** Pods that are no longer assigned; forgotten once they are removed completely. */
  readonly #unassigned = new Set<string>();
  readonly #damaged = new Map<string, PodMemory>();
  readonly #closing = new AbortController();
  readonly #hardClosing = new AbortController();
  readonly #running = new Set<Promise<void>>();
  #ready = false;
  #volumesRecovered = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const { clock, random, runtime, probe, limits, events } = options;
    const signal = this.#hardClosing.signal;
    this.#observer = new RuntimeObserver({
      runtime,
      clock,
      random,
      signal: this.#closing.signal,
      repairIntervalMs: limits.repairIntervalMs,
      onChange: (podUid) => this.#loops.get(podUid)?.wake(),
      onListed: (error) => this.#listed(error),
      onEvents: (error) => events.impaired("events", error),
    });
    options.devices.onFreed(() => {
      for (const loop of this.#loops.values()) loop.devicesFreed();
    });
    this.#probes = new ProbeRunner({
      clock,
      run: probe,
      onChange: (containerId) => this.#loops.get(this.#observer.podOf(containerId) ?? "")?.wake(),
    });
    this.#dependencies = {
      ...options,
      volumes: afterRecovery(options.volumes, () => this.#volumesRecovered),
      observer: this.#observer,
      probes: this.#probes,
      hooks: { clock, run: probe },
      images: new ImageStore({
        runtime,
        clock,
        backOff: limits.image,
        signal,
        onChange: (reference) => this.#wakeUsersOf(reference),
        onPulled: () => options.imagesChanged?.(),
        ...(options.imageAccess && { access: options.imageAccess }),
        otherNodes: options.otherNodes,
      }),
      startGate: new Semaphore(limits.startsAtOnce),
      stopGate: new Semaphore(limits.removalsAtOnce),
      restartLimits: limits.restart,
      faultBackOff: limits.fault,
      events: {
        ...events,
        remembered: (podUid, memory) => events.remembered(podUid, memory),
        over: (podUid, memory) => events.over(podUid, memory),
        removed: (podUid, memory) => events.removed(podUid, memory),
        changed: (status) => this.#changed(status),
        stepped: (podUid, step, tookMs, error) => events.stepped(podUid, step, tookMs, error),
      },
    };
  }

  /** Whether the runtime and the network have both answered since the start. */
  get ready(): boolean {
    return this.#ready;
  }

  /** Adopts what runs on the host and starts what is missing. Resolves once the loop of every pod runs. */
  async start(recorded: readonly RecordedPod[]): Promise<void> {
    for (const { uid, pod, memory = EMPTY_MEMORY, damaged = false } of recorded) {
      if (damaged) this.#damaged.set(uid, memory);
      else this.#add(pod ?? orphanPod(uid), pod === undefined, memory);
    }
    const listed = this.#retryUntilDone("runtime", () => this.#observer.refresh());
    // Pods whose memory was lost are found by their containers.
    if (this.#remembered().some(({ memory }) => memory.sandbox === undefined)) await listed;
    await Promise.all([listed, this.#retryUntilDone("network", (signal) => this.#startNetwork(signal))]);
    for (const loop of this.#loops.values()) loop.portsTakenOver();
    await this.#checkSandboxes();
    this.#addOrphans();
    await this.#addLeftFiles();
    // Containers of unknown pods may still use volumes.
    await this.#recoverVolumes();
    const { devices } = this.#options;
    await this.#retryUntilDone("devices", () => devices.recover(this.#knownUids(), this.#inUse().devices));
    if (this.#closing.signal.aborted) return;
    this.#ready = true;
    for (const loop of this.#loops.values()) this.#run(loop);
    this.#track(this.#observer.run());
  }

  /** Replaces the whole assignment. Pods that are not in `pods` are removed and forgotten. */
  replace(pods: readonly Pod[]): void {
    const assigned = new Set(pods.map((pod) => pod.uid));
    this.apply(
      pods,
      [...this.#loops.keys()].filter((uid) => !assigned.has(uid)),
    );
    for (const [uid, memory] of this.#damaged) this.#begin(orphanPod(uid), true, memory);
    this.#damaged.clear();
    if (this.#ready) this.#addOrphans();
  }

  /**
   * Applies a change of the assignment. Pods in `removals` are no longer assigned and are forgotten once they are
   * removed completely.
   */
  apply(upserts: readonly Pod[], removals: readonly string[]): void {
    for (const pod of upserts) {
      const loop = this.#loops.get(pod.uid);
      if (loop !== undefined) {
        loop.assign(pod, goalOf(pod));
        continue;
      }
      this.#begin(pod, false, this.#damaged.get(pod.uid) ?? EMPTY_MEMORY);
      this.#damaged.delete(pod.uid);
    }
    for (const uid of removals) {
      const loop = this.#loops.get(uid);
      if (loop === undefined) continue;
      this.#unassigned.add(uid);
      if (loop.status().phase === "REMOVED") this.#forget(uid);
      else loop.assign(loop.pod, "remove");
    }
  }

  /** Ends a pod that exceeds its limits on host resources. Ignores unknown uids. */
  evict(podUid: string, message: string): void {
    this.#loops.get(podUid)?.evict(message);
  }

  /** Ends the wait of a pod whose start was blocked. Ignores unknown uids. */
  retryStart(podUid: string): void {
    const loop = this.#loops.get(podUid);
    loop?.assign(loop.pod, loop.goal);
  }

  statuses(): readonly PodStatus[] {
    return [...this.#loops.values()].map((loop) => loop.status());
  }

  statusOf(podUid: string): PodStatus | undefined {
    return this.#loops.get(podUid)?.status();
  }

  /** Returns the images of all known pods, by the names that the pods use. */
  images(): readonly string[] {
    return [...this.#loops.values()].flatMap((loop) => allContainers(loop.pod).map((it) => it.image));
  }

  /** Returns the running containers whose writable layer has a size limit. */
  limitedRoots(): readonly LimitedRoot[] {
    return [...this.#loops.values()].flatMap(({ pod }) =>
      limitedRootsOf(pod, this.#observer.containersOf(pod.uid)),
    );
  }

  /** The state of images, which all pods share. */
  get imageStore(): Pick<ImageStore, "state" | "fetch"> {
    return this.#dependencies.images;
  }

  /** Records that the image was stored on this host by other means than a pull. */
  imageStored(reference: string): void {
    this.#dependencies.images.stored(reference);
  }

  /** Records that the image was removed from this host. */
  imageRemoved(reference: string): void {
    this.#dependencies.images.forget(reference);
    this.#options.imagesChanged?.();
  }

  /** Finds the running container that a session attaches to; an empty name means the main container. */
  find(podUid: string, container: string): FoundContainer | undefined {
    const loop = this.#loops.get(podUid);
    return loop && findContainer(loop, container, this.#observer);
  }

  /** Returns the exit code of a container's run that has ended. Undefined if it is not known. */
  exitCodeOf(podUid: string, run: ContainerRun): number | undefined {
    const loop = this.#loops.get(podUid);
    return loop && exitCodeOf(loop, run, this.#observer);
  }

  /** Returns the pod's sandbox with its ports; undefined while it has no network. */
  sandboxOf(podUid: string): PodSandbox | undefined {
    return this.#loops.get(podUid)?.memory.sandbox;
  }

  /** Waits a limited time for running steps to end, then stops the loops. Containers keep running. */
  async close(): Promise<void> {
    const { clock, limits } = this.#options;
    this.#closing.abort();
    const timeUp = pause(clock, limits.closeMs, this.#hardClosing.signal).then(() =>
      this.#hardClosing.abort(),
    );
    await Promise.all(this.#running);
    this.#hardClosing.abort();
    await this.#probes.close();
    await timeUp;
  }

  #begin(pod: Pod, unassigned: boolean, memory: PodMemory): void {
    const loop = this.#add(pod, unassigned, memory);
    if (this.#ready) this.#run(loop);
  }

  #add(pod: Pod, unassigned: boolean, memory: PodMemory): PodLoop {
    // The recorded assignment may be older than the recorded removal, because a full disk accepted only the removal.
    const goal = unassigned || memory.removed ? "remove" : goalOf(pod);
    const loop = new PodLoop(this.#dependencies, { pod, goal, memory });
    this.#loops.set(pod.uid, loop);
    if (unassigned) this.#unassigned.add(pod.uid);
    return loop;
  }

  /** Adds a placeholder for each unknown pod that a container's label names. */
  #addOrphans(): void {
    for (const uid of this.#observer.podUids()) this.#addOrphan(uid);
  }

  #addOrphan(uid: string): void {
    if (!this.#loops.has(uid) && !this.#damaged.has(uid)) this.#begin(orphanPod(uid), true, EMPTY_MEMORY);
  }

  /**
   * Adds a placeholder for each unknown pod that has only files left, because the agent ended while it removed the pod.
   */
  async #addLeftFiles(): Promise<void> {
    const uids = await this.#options.files.podUids().catch(() => []);
    for (const uid of uids) this.#addOrphan(uid);
  }

  #remembered(): readonly RememberedPod[] {
    return [
      ...[...this.#damaged].map(([uid, memory]) => ({ uid, memory })),
      ...[...this.#loops].map(([uid, { pod, memory }]) => ({ uid, pod, memory })),
    ];
  }

  async #startNetwork(signal: AbortSignal): Promise<void> {
    const { network, runtime, host } = this.#options;
    const known = await knownPods(this.#remembered(), { runtime, observer: this.#observer }, signal);
    for (const { podUid, ...found } of await network.start(known, signal)) {
      const memory = this.#damaged.get(podUid);
      if (memory !== undefined) this.#damaged.set(podUid, { ...memory, ...found });
      this.#loops.get(podUid)?.recover(found);
    }
    for (const [uid, loop] of this.#loops) {
      if (loop.pod.network?.hostNetwork) loop.recover({ sandbox: hostSandbox(uid, host.addresses) });
    }
  }

  #run(loop: PodLoop): void {
    // The loop ends at once when the pod is forgotten or when the agent stops.
    this.#track(loop.run(this.#closing.signal, this.#hardClosing.signal));
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  #changed(status: PodStatus): void {
    this.#options.events.changed(status);
    if (status.phase === "REMOVED" && this.#unassigned.has(status.uid)) this.#forget(status.uid);
  }

  #wakeUsersOf(image: string): void {
    this.#options.imageChanged?.(image);
    for (const loop of this.#loops.values()) {
      if (allContainers(loop.pod).some((it) => it.image === image)) loop.wake();
    }
  }

  #forget(uid: string): void {
    this.#loops.get(uid)?.close();
    this.#loops.delete(uid);
    this.#unassigned.delete(uid);
    this.#options.events.forgotten(uid);
  }

  #listed(error: unknown): void {
    this.#options.events.impaired("runtime", error);
    if (error !== undefined || !this.#ready) return;
    this.#addOrphans();
    this.#track(this.#checkSandboxes());
  }

  /** Detects namespaces that were removed from outside; their pods then get new ones. */
  async #checkSandboxes(): Promise<void> {
    const running = [...this.#loops.values()].filter((loop) => loop.goal === "run");
    const known = running
      .flatMap((loop) => loop.memory.sandbox ?? [])
      .filter(({ namespacePath }) => namespacePath !== HOST_NETWORK);
    // If the check fails, treat all sandboxes as present. The next listing checks again.
    const lost = await this.#options.network.findLost(known).catch(() => []);
    for (const sandbox of lost) {
      const loop = this.#loops.get(sandbox.podUid);
      if (loop?.memory.sandbox === sandbox) loop.sandboxLost();
    }
  }

  /** Recovers volumes. If that takes long, pods without volumes do not wait for it. */
  async #recoverVolumes(): Promise<void> {
    const { clock, volumes } = this.#options;
    const recovered = new AbortController();
    const work = this.#retryUntilDone("volumes", (signal) =>
      volumes.recover({ knownUids: this.#knownUids(), inUse: this.#inUse().volumes }, signal),
    ).then(() => {
      this.#volumesRecovered = !this.#closing.signal.aborted;
      recovered.abort();
    });
    this.#track(work);
    await pause(clock, RECOVER_WAIT_MS, recovered.signal);
  }

  #knownUids(): ReadonlySet<string> {
    return new Set([...this.#loops.keys(), ...this.#damaged.keys()]);
  }

  #inUse(): HostUse {
    return hostUseOf(
      [...this.#loops.values()].map(({ pod }) => pod),
      this.#observer,
    );
  }

  #retryUntilDone(part: HostPart, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { clock, events } = this.#options;
    const outcome = (error: unknown) => events.impaired(part, error);
    return retryUntilDone(work, { clock, signal: this.#closing.signal, outcome });
  }
}

function goalOf(pod: Pod): PodView["goal"] {
  return pod.stopping ? "remove" : "run";
}
