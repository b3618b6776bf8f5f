import type { Clock } from "../clock.ts";
import { type DiskPressure, diskPressure } from "./disk-pressure.ts";
import { defaultReserve, nodeResources, type Quantities, type Reserve } from "./node-resources.ts";
import type { HostIdentity, HostMeasure, HostReader } from "./read-host.ts";

export const DEFAULT_MAX_PODS = 110;
/** Disks fill slowly compared to this, and a measurement takes about a millisecond. */
const REFRESH_INTERVAL_MS = 60_000;
/** The interval of checks. A full disk that has room again soon accepts new pods. */
const PRESSED_REFRESH_INTERVAL_MS = 10_000;

export interface HostCapacityOptions {
  readonly nodeName: string;
  /** A path on the file system that holds containers and their logs. */
  readonly storagePath: string;
  readonly maxPods: number;
  /** The operator's reserve. Missing fields depend on the host's size. */
  readonly reserve: Partial<Reserve>;
}

/** The part of a node's report that describes the host itself. */
export interface CapacityReport {
  readonly capacity: Quantities;
  readonly allocatable: Quantities;
  readonly labels: Readonly<Record<string, string>>;
  readonly os: string;
  readonly kernel: string;
  readonly architecture: string;
  readonly diskPressure: DiskPressure;
}

/** Measures the host's capacity. It measures again at intervals, because limits and disks change while the host runs. */
export class HostCapacity {
  readonly #options: HostCapacityOptions;
  readonly #identity: HostIdentity;
  readonly #reader: HostReader;
  readonly #clock: Clock;
  #report: CapacityReport;
  #onChange: (() => void) | undefined;
  #cancel: (() => void) | undefined;
  #closed = false;

  private constructor(
    options: HostCapacityOptions,
    parts: { reader: HostReader; clock: Clock },
    first: First,
  ) {
    this.#options = options;
    this.#reader = parts.reader;
    this.#clock = parts.clock;
    this.#identity = first.identity;
    this.#report = makeReport(options, first.identity, first.measure, false);
    this.#scheduleCheck();
  }

  static async open(
    options: HostCapacityOptions,
    parts: { reader: HostReader; clock: Clock },
  ): Promise<HostCapacity> {
    const [identity, measure] = await Promise.all([
      parts.reader.identity(),
      parts.reader.measure(options.storagePath),
    ]);
    return new HostCapacity(options, parts, { identity, measure });
  }

  get bootId(): string {
    return this.#identity.bootId;
  }

  /** Returns the last measurement. */
  report(): CapacityReport {
    return this.#report;
  }

  /** Calls `run` after each measurement in which the report changed in more than its wording. Supports one listener. */
  onChange(run: () => void): void {
    this.#onChange = run;
  }

  /** Measures the capacity now. */
  async refresh(): Promise<void> {
    const measure = await this.#reader.measure(this.#options.storagePath);
    if (this.#closed) return;
    const before = this.#report;
    this.#report = makeReport(this.#options, this.#identity, measure, before.diskPressure.pressure);
    if (essence(before) !== essence(this.#report)) this.#onChange?.();
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  #scheduleCheck(): void {
    if (this.#closed) return;
    const { pressure } = this.#report.diskPressure;
    this.#cancel = this.#clock.schedule(
      pressure ? PRESSED_REFRESH_INTERVAL_MS : REFRESH_INTERVAL_MS,
      async () => {
        // A value that can't be read keeps its last state until the next measurement.
        await this.refresh().catch(() => undefined);
        this.#scheduleCheck();
      },
    );
  }
}

interface First {
  readonly identity: HostIdentity;
  readonly measure: HostMeasure;
}

function makeReport(
  options: HostCapacityOptions,
  { os, kernel, architecture }: HostIdentity,
  { cpuMilli, memoryBytes, disk }: HostMeasure,
  pressureBefore: boolean,
): CapacityReport {
  const host = { cpuMilli, memoryBytes, diskBytes: disk.totalBytes };
  const reserve = { ...defaultReserve(host), ...options.reserve };
  return {
    ...nodeResources(host, reserve, options.maxPods),
    labels: {
      "kubernetes.io/hostname": options.nodeName,
      "kubernetes.io/os": "linux",
      "kubernetes.io/arch": architecture,
    },
    os,
    kernel,
    architecture,
    diskPressure: diskPressure(disk, pressureBefore, options.reserve.diskBytes),
  };
}

function essence(report: CapacityReport): string {
  const { capacity, allocatable, diskPressure } = report;
  return JSON.stringify([capacity, allocatable, diskPressure.reason]);
}
