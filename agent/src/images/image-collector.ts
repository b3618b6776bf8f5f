import { type Clock, pause } from "../clock.ts";
import { fullForm } from "../runtime/image-reference.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import type { ImageRecords } from "./image-records.ts";
import { type CollectionLimits, planCollection, type StoredImage } from "./plan-collection.ts";

export interface ImageCollectorOptions {
  readonly runtime: Pick<ContainerRuntime, "list" | "listImages" | "removeImage" | "imageStorage">;
  readonly clock: Clock;
  readonly records: ImageRecords;
  readonly limits: CollectionLimits;
  /** Returns the images named by the pods assigned to this host, in whatever state the pods are. */
  readonly desired: () => readonly string[];
  /** Returns the use of a directory's file system, in percent of the usable space. */
  readonly usedPercent: (directory: string) => Promise<number>;
  readonly events: ImageCollectorEvents;
}

export interface ImageCollectorEvents {
  /** Called after an image was removed. Caches of present images must drop it. */
  removed(reference: string, why: "age" | "disk-pressure"): void;
  failed(error: unknown): void;
  /** Called when the disk is above its threshold and no removable image is left. */
  stillFull(usedPercent: number): void;
}

const INTERVAL_MS = 300_000;
// Pods that were on the host before a start must be known first.
const FIRST_MS = 120_000;
// Further images are removed in the next round.
const REMOVALS_MOST = 100;

/** Removes images that have been unused for long and, when the disk is nearly full, those unused longest. */
export class ImageCollector {
  readonly #options: ImageCollectorOptions;

  constructor(options: ImageCollectorOptions) {
    this.#options = options;
  }

  /** Collects every five minutes until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, events } = this.#options;
    for (let waitMs = FIRST_MS; ; waitMs = INTERVAL_MS) {
      await pause(clock, waitMs, signal);
      if (signal.aborted) return;
      await this.collect(signal).catch((error) => {
        if (!signal.aborted) events.failed(error);
      });
    }
  }

  /** Runs one collection. */
  async collect(signal: AbortSignal): Promise<void> {
    const { limits, clock, records } = this.#options;
    const plan = planCollection(await this.#listImages(signal), limits, clock.nowMs());
    let left = REMOVALS_MOST;
    for (const reference of plan.expired.slice(0, left)) {
      await this.#remove(reference, "age", signal);
      left -= 1;
    }
    await this.#makeRoom(plan.spare.slice(0, left), signal);
    await records.save();
  }

  async #listImages(signal: AbortSignal): Promise<readonly StoredImage[]> {
    const { runtime, records, desired, clock } = this.#options;
    const listedAtMs = clock.nowMs();
    const [images, containers] = await Promise.all([runtime.listImages(signal), runtime.list(signal)]);
    // Queried last, so that a pod counts that arrived while the runtime listed images.
    const used = new Set([...desired(), ...containers.map((it) => it.image)].map(fullForm));
    records.keep(images, listedAtMs);
    records.used(images.filter((it) => used.has(it) || records.get(it) === undefined));
    const nowMs = clock.nowMs();
    return images.map((reference) => ({
      reference,
      lastUsedMs: records.get(reference)?.lastUsedMs ?? nowMs,
      inUse: used.has(reference),
      pushed: records.get(reference)?.pushed !== undefined,
    }));
  }

  async #makeRoom(spare: readonly string[], signal: AbortSignal): Promise<void> {
    const { runtime, limits, usedPercent, events } = this.#options;
    const directory = await runtime.imageStorage(signal);
    if (directory === undefined) return;
    let used = await usedPercent(directory);
    if (used < limits.highPercent) return;
    for (const reference of spare) {
      if (used <= limits.lowPercent) return;
      await this.#remove(reference, "disk-pressure", signal);
      used = await usedPercent(directory);
    }
    if (used >= limits.highPercent) events.stillFull(used);
  }

  async #remove(reference: string, why: "age" | "disk-pressure", signal: AbortSignal): Promise<void> {
    const { runtime, desired, events } = this.#options;
    if (desired().map(fullForm).includes(reference)) return;
    try {
      if ((await runtime.removeImage(reference, signal)) === "removed") events.removed(reference, why);
    } catch (error) {
      if (signal.aborted) throw error;
      // Other images can still be removed.
      events.failed(error);
    }
  }
}
