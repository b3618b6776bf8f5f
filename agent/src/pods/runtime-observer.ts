import type { Clock } from "../clock.ts";
import { pause } from "../clock.ts";
import type { ContainerRuntime, RuntimeContainer, RuntimeEvent } from "../runtime/runtime.ts";
import { observe, podUidOf } from "./container-name.ts";
import type { ObservedContainer } from "./pod.ts";

export interface ObserverOptions {
  readonly runtime: Pick<ContainerRuntime, "list" | "events">;
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly repairIntervalMs: number;
  readonly signal: AbortSignal;
  /** Called when the pod's containers have changed. */
  readonly onChange: (podUid: string) => void;
  /** Called after each listing, with the error if it failed. */
  readonly onListed: (error: unknown) => void;
  /** Called with the error when the event stream breaks, and with undefined when it works. */
  readonly onEvents: (error: unknown) => void;
}

interface Known {
  readonly podUid: string;
  readonly image: string;
  readonly observed: ObservedContainer;
  /** The value of the observer's counter at the last report. */
  readonly touched: number;
}

// Limits the recorded exits of containers whose start has not been reported yet. More than a host starts at one time.
const EARLY_EXITS_MAX = 1_000;
const LISTEN_AGAIN_MS = 1_000;
const LIST_AGAIN_MS = 2_000;

/** Tracks the containers in the runtime. Events and the agent's own calls update it, and listings correct it. */
export class RuntimeObserver {
  readonly #options: ObserverOptions;
  readonly #known = new Map<string, Known>();
  readonly #byPod = new Map<string, Set<string>>();
  readonly #earlyExits = new Map<string, Partial<ObservedContainer>>();
  /** Containers removed during a listing, which may still contain them. */
  readonly #removed = new Map<string, number>();
  #count = 0;
  /** Whether the last listing has failed. */
  #hasFailed = false;
  #endWait = (): void => undefined;
  #listing: Promise<void> | undefined;
  #queued: Promise<void> | undefined;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  containersOf(podUid: string): readonly ObservedContainer[] {
    const ids = this.#byPod.get(podUid);
    if (ids === undefined) return [];
    return [...ids].flatMap((id) => this.#known.get(id)?.observed ?? []);
  }

  /** Returns the uid of the container's pod, or undefined if the container is unknown. */
  podOf(id: string): string | undefined {
    return this.#known.get(id)?.podUid;
  }

  podUids(): readonly string[] {
    return [...this.#byPod.keys()];
  }

  /** Returns the images of the known containers. */
  images(): ReadonlySet<string> {
    return new Set([...this.#known.values()].map((it) => it.image));
  }

  /** Reads the list. Calls during a listing share the next one, which starts after them. */
  refresh(): Promise<void> {
    if (this.#listing === undefined) {
      this.#listing = this.#listAndPublish().finally(() => {
        this.#listing = undefined;
      });
      return this.#listing;
    }
    this.#queued ??= this.#listing
      .catch(() => undefined)
      .then(() => {
        this.#queued = undefined;
        return this.refresh();
      });
    return this.#queued;
  }

  /** Records a container that this agent has just started. */
  noteStarted(podUid: string, image: string, container: ObservedContainer): void {
    const known = this.#known.get(container.id)?.observed;
    const exit = known?.state === "exited" ? known : this.#earlyExits.get(container.id);
    this.#earlyExits.delete(container.id);
    this.#put(podUid, image, { ...container, ...(known?.oomKilled && { oomKilled: true }), ...exit });
  }

  noteStopped(ids: readonly string[]): void {
    for (const id of ids) {
      const known = this.#known.get(id);
      if (known === undefined || known.observed.state === "exited") continue;
      this.#put(known.podUid, known.image, { ...known.observed, state: "exited" });
    }
  }

  noteRemoved(ids: readonly string[]): void {
    for (const id of ids) this.#forget(id);
  }

  /** Receives events and lists containers until the signal aborts. */
  async run(): Promise<void> {
    await Promise.all([this.#listen(), this.#repair()]);
  }

  async #listen(): Promise<void> {
    const { runtime, clock, signal, onEvents } = this.#options;
    while (!signal.aborted) {
      try {
        for await (const event of runtime.events(signal)) this.#handle(event);
      } catch (error) {
        if (!signal.aborted) onEvents(error);
      }
      await pause(clock, LISTEN_AGAIN_MS, signal);
      // While events are unavailable, listings detect exits.
      if (!signal.aborted) await this.refresh().catch(() => undefined);
    }
  }

  async #repair(): Promise<void> {
    const { random, repairIntervalMs, signal } = this.#options;
    while (!signal.aborted) {
      const delayMs = this.#hasFailed ? LIST_AGAIN_MS : repairIntervalMs;
      const isDue = await this.#waitForNext(delayMs * (0.9 + 0.2 * random()));
      if (signal.aborted) return;
      if (isDue) await this.refresh().catch(() => undefined);
    }
  }

  /** Returns false if another listing has failed meanwhile, after which the next one is due earlier. */
  #waitForNext(delayMs: number): Promise<boolean> {
    const { clock, signal } = this.#options;
    return new Promise((resolve) => {
      const end = (isDue: boolean): void => {
        cancel();
        signal.removeEventListener("abort", stop);
        this.#endWait = () => undefined;
        resolve(isDue);
      };
      const stop = (): void => end(false);
      const cancel = clock.schedule(delayMs, () => end(true));
      signal.addEventListener("abort", stop, { once: true });
      this.#endWait = stop;
    });
  }

  #handle(event: RuntimeEvent): void {
    switch (event.type) {
      case "listening":
        // Events don't include what happened before the subscription, but the list does.
        this.#options.onEvents(undefined);
        void this.refresh().catch(() => undefined);
        return;
      case "started":
        this.#change(event.containerId, { state: "running" });
        return;
      case "oom":
        this.#change(event.containerId, { oomKilled: true });
        return;
      case "exited":
        this.#change(event.containerId, {
          state: "exited",
          exitCode: event.exitCode,
          finishedAtMs: event.atMs,
        });
        return;
      case "removed":
        this.#forget(event.containerId);
        return;
      default:
        event satisfies never;
    }
  }

  #change(id: string, change: Partial<ObservedContainer>): void {
    const known = this.#known.get(id);
    if (known === undefined) {
      if (change.state === "running") return;
      if (this.#earlyExits.size >= EARLY_EXITS_MAX) {
        const oldest = this.#earlyExits.keys().next().value;
        if (oldest !== undefined) this.#earlyExits.delete(oldest);
      }
      this.#earlyExits.set(id, { ...this.#earlyExits.get(id), ...change });
      return;
    }
    // An attempt never starts twice, so an exit is final and a start reported after it is outdated.
    if (known.observed.state === "exited" && change.state === "running") return;
    this.#put(known.podUid, known.image, { ...known.observed, ...change });
  }

  async #listAndPublish(): Promise<void> {
    const { signal, onListed } = this.#options;
    try {
      await this.#list();
    } catch (error) {
      if (!signal.aborted) onListed(error);
      if (!this.#hasFailed) {
        this.#hasFailed = true;
        this.#endWait();
      }
      throw error;
    }
    this.#hasFailed = false;
    onListed(undefined);
  }

  async #list(): Promise<void> {
    this.#count += 1;
    const began = this.#count;
    const listed = await this.#options.runtime.list(this.#options.signal);
    const ids = new Set(listed.map((it) => it.id));
    for (const [id, known] of this.#known) {
      if (!ids.has(id) && known.touched < began) this.#forget(id);
    }
    for (const container of listed) this.#applyListed(container, began);
    for (const [id, at] of this.#removed) if (at < began) this.#removed.delete(id);
  }

  #applyListed(container: RuntimeContainer, began: number): void {
    const podUid = podUidOf(container.labels);
    // The container belongs to no pod; other parts of the agent may run containers of their own.
    if (podUid === undefined) return;
    const known = this.#known.get(container.id);
    if ((known?.touched ?? this.#removed.get(container.id) ?? 0) >= began) return;
    const seen = observe(container);
    // An event may be newer than the list. An attempt never starts twice, so an exit is final.
    if (known?.observed.state === "exited" && seen.state !== "exited") return;
    const observed: ObservedContainer = {
      ...known?.observed,
      ...seen,
      ...this.#earlyExits.get(container.id),
      ...(seen.state === "unknown"
        ? { unknownSinceMs: known?.observed.unknownSinceMs ?? this.#options.clock.monotonicMs() }
        : {}),
    };
    this.#earlyExits.delete(container.id);
    if (known !== undefined && known.observed.state === observed.state) {
      this.#known.set(container.id, { ...known, observed });
      return;
    }
    this.#put(podUid, container.image, observed);
  }

  #put(podUid: string, image: string, observed: ObservedContainer): void {
    this.#count += 1;
    this.#known.set(observed.id, { podUid, image, observed, touched: this.#count });
    const ids = this.#byPod.get(podUid) ?? new Set();
    this.#byPod.set(podUid, ids.add(observed.id));
    this.#options.onChange(podUid);
  }

  #forget(id: string): void {
    this.#count += 1;
    this.#earlyExits.delete(id);
    if (this.#listing !== undefined) this.#removed.set(id, this.#count);
    const known = this.#known.get(id);
    if (known === undefined) return;
    this.#known.delete(id);
    const ids = this.#byPod.get(known.podUid);
    ids?.delete(id);
    if (ids?.size === 0) this.#byPod.delete(known.podUid);
    this.#options.onChange(known.podUid);
  }
}
