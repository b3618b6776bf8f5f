import type { Log } from "@forage/common/log";
import type { Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import { ImageCollector } from "./images/image-collector.ts";
import type { ImageRecords } from "./images/image-records.ts";
import { usedPercent } from "./images/used-percent.ts";
import type { PodSupervisor } from "./pods/pod-supervisor.ts";
import { RootDiskWatch } from "./runtime/root-disk-watch.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";
import { DiskUseWatch, measureUse } from "./volumes/disk-use-watch.ts";
import { ChildRunner } from "./volumes/run-child.ts";

export interface DiskMaintenanceOptions {
  readonly limits: Config["images"];
  readonly clock: Clock;
  readonly runtime: ContainerRuntime;
  readonly records: ImageRecords;
  readonly supervisor: PodSupervisor;
  /** Images that pods will need soon. */
  readonly prefetchStatus: () => readonly string[];
  readonly log: Log;
}

const DAY_MS = 86_400_000;

/** Limits the disk use of containerd: removes unused images, and measures the writable layers of containers. */
export class DiskMaintenance {
  readonly #options: DiskMaintenanceOptions;
  readonly #collector: ImageCollector;
  readonly #diskUse: DiskUseWatch;
  readonly #roots: RootDiskWatch;
  readonly #closing = new AbortController();

  constructor(options: DiskMaintenanceOptions) {
    this.#options = options;
    const { clock, runtime, supervisor, log } = options;
    const children = new ChildRunner();
    this.#collector = makeCollector(options);
    this.#diskUse = new DiskUseWatch({
      clock,
      measure: (path, signal) => measureUse(path, children, signal),
      onError: (path, err) => log.warn({ event: "container-disk-not-measured", path, err }),
    });
    this.#roots = new RootDiskWatch({
      runtime,
      diskUse: this.#diskUse,
      signal: this.#closing.signal,
      exceeded: ({ podUid, message }) => {
        log.warn({ event: "container-disk-exceeded", pod: podUid, reason: message });
        supervisor.evict(podUid, message);
      },
      failed: ({ podUid, container }, err) =>
        log.warn({ event: "container-disk-not-watched", pod: podUid, container, err }),
    });
  }

  /** The containers of a pod may have changed. */
  podChanged(): void {
    this.#roots.follow(this.#options.supervisor.limitedRoots());
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#collector.run(signal);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#diskUse.close();
    await this.#options.records.save();
  }
}

function makeCollector({
  limits,
  clock,
  runtime,
  records,
  supervisor,
  prefetchStatus,
  log,
}: DiskMaintenanceOptions): ImageCollector {
  const { unusedDays, highPercent, lowPercent } = limits;
  return new ImageCollector({
    runtime,
    clock,
    records,
    // Swapped thresholds would remove nothing.
    limits: { unusedMs: unusedDays * DAY_MS, highPercent, lowPercent: Math.min(lowPercent, highPercent) },
    desired: () => [...supervisor.images(), ...prefetchStatus()],
    usedPercent,
    events: {
      removed: (image, why) => {
        supervisor.imageRemoved(image);
        log.info({ event: "image-removed", image, why });
      },
      failed: (err) => log.warn({ event: "images-not-collected", err }),
      stillFull: (percent) =>
        log.warn({ event: "disk-full-without-unused-images", usedPercent: Math.round(percent) }),
    },
  });
}
