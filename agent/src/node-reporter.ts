import { isDeepStrictEqual } from "node:util";
import type { ClaimStatus, NodeCondition, NodeReport, NodeUsage } from "@forage/proto/forage/agent/v1/agent";
import type { CapacityReport } from "./capacity/host-capacity.ts";
import type { UsageMeter } from "./capacity/usage-meter.ts";
import type { Clock } from "./clock.ts";
import { pause } from "./clock.ts";
import type { DeviceAmounts } from "./devices/devices.ts";
import type { HostFeatures } from "./host-features.ts";
import type { NodeSource } from "./link/node-source.ts";
import type { HostPart } from "./pods/supervisor-options.ts";
import type { ContainerRuntime, RuntimeVersion } from "./runtime/runtime.ts";
import type { ClaimState } from "./volumes/volumes.ts";

export interface NodeReporterOptions {
  readonly clock: Clock;
  readonly runtime: Pick<ContainerRuntime, "version" | "listImages">;
  readonly capacity: { report(): CapacityReport };
  readonly usage: Pick<UsageMeter, "read">;
  /** The operator's labels, which can't override the host's own. */
  readonly labels: Readonly<Record<string, string>>;
  /** The host's addresses, one for each family by which others reach it. The first one identifies it. */
  readonly addresses: readonly string[];
  /** Returns the subnets in which the host can announce load balancer addresses. */
  readonly networks: () => readonly string[];
  readonly features: Pick<HostFeatures, "seLinux" | "runtimeClasses">;
  readonly devices: () => DeviceAmounts;
  readonly claims: () => Promise<readonly ClaimState[]>;
  readonly podCount: () => number;
  /** Returns a description of the agent's files that were found damaged since its start, or undefined. */
  readonly damage: () => string | undefined;
  /** Called when the report has changed in a way that should be sent soon. */
  readonly onChange: () => void;
}

// A listing costs 50 ms of CPU, and image locality is only a hint for the scheduler.
const IMAGES_INTERVAL_MS = 600_000;
const IMAGES_AGAIN_MS = 30_000;
// Pods of one rollout pull their images at about the same time, so one listing shows them all.
const IMAGES_SETTLE_MS = 5_000;
// More references would make the message at each connect too large.
const IMAGES_MAX = 500;
// Enough for about ten files; the agent's log has all.
const CONDITION_MESSAGE_MAX = 2_000;

/**
 * `assignments` and `states` are the parts of the journal: desired pods, and their recorded states. `boot`: whether the
 * states on disk are from the current boot.
 */
export type ReportedPart = HostPart | "assignments" | "states" | "boot";

/** Collects everything that the coordinator receives about the host. */
export class NodeReporter implements NodeSource {
  readonly #options: NodeReporterOptions;
  readonly #problems = new Map<ReportedPart, string>([
    ["runtime", "it has not answered yet"],
    ["network", "it has not been set up yet"],
  ]);
  #version: RuntimeVersion = { containerd: "", nerdctl: "" };
  #images: readonly string[] = [];
  /** A signal that aborts when `run` ends. */
  #running: AbortSignal | undefined;
  #imagesCheck: Promise<void> | undefined;
  #claims: readonly ClaimState[] = [];
  #claimsCheck: Promise<void> | undefined;
  #claimsChanged = false;

  constructor(options: NodeReporterOptions) {
    this.#options = options;
  }

  report(): NodeReport {
    const { capacity, allocatable, labels, os, kernel, architecture } = this.#options.capacity.report();
    const { features, devices } = this.#options;
    const units = devices();
    return {
      capacity: { ...texts(units.capacity), ...capacity },
      allocatable: { ...texts(units.allocatable), ...allocatable },
      labels: { ...this.#options.labels, ...labels },
      address: this.#options.addresses[0] ?? "",
      addresses: [...this.#options.addresses],
      networks: [...this.#options.networks()],
      os,
      kernel,
      architecture,
      containerdVersion: this.#version.containerd,
      nerdctlVersion: this.#version.nerdctl,
      conditions: this.#conditions(),
      images: [...this.#images],
      runtimeClasses: Object.keys(features.runtimeClasses).sort(),
      selinux: features.seLinux,
      claims: this.#claims.map(encodeClaim),
    };
  }

  async usage(): Promise<NodeUsage> {
    const { cpuMilli, memoryBytes } = await this.#options.usage.read();
    return {
      cpuMilli: BigInt(Math.round(cpuMilli)),
      memoryBytes: BigInt(Math.round(memoryBytes)),
      pods: this.#options.podCount(),
    };
  }

  /** Records a part's problem. Undefined: the part works again. */
  impaired(part: ReportedPart, problem: string | undefined): void {
    if (this.#problems.get(part) === problem) return;
    if (problem === undefined) this.#problems.delete(part);
    else this.#problems.set(part, problem);
    this.#options.onChange();
  }

  /** Reads the claims soon and reports a change, because a pod may have created, acquired or released a claim. */
  checkClaims(): void {
    this.#claimsChanged = true;
    this.#claimsCheck ??= this.#readClaims().finally(() => {
      this.#claimsCheck = undefined;
    });
  }

  /** Returns the problems that prevent the host from running pods. */
  problems(): readonly string[] {
    return [...this.#problems].map(([part, problem]) => `${part}: ${problem}`);
  }

  /** Lists the images now, because they were changed. If that fails, the next listing corrects it. */
  async checkImages(signal: AbortSignal): Promise<void> {
    const images = await this.#options.runtime.listImages(signal).catch(() => undefined);
    if (images === undefined || isDeepStrictEqual(reported(images), this.#images)) return;
    this.#images = reported(images);
    this.#options.onChange();
  }

  /**
   * Lists the images soon, together with further changes within seconds, because a pod has pulled an image or one was
   * removed.
   */
  imagesChanged(): void {
    const signal = this.#running;
    // `run` begins with a listing.
    if (signal === undefined || signal.aborted) return;
    this.#imagesCheck ??= pause(this.#options.clock, IMAGES_SETTLE_MS, signal).then(() => {
      this.#imagesCheck = undefined;
      return signal.aborted ? undefined : this.checkImages(signal);
    });
  }

  /** Keeps versions and images up to date until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, runtime } = this.#options;
    this.#running = signal;
    this.checkClaims();
    while (!signal.aborted) {
      let delayMs = IMAGES_INTERVAL_MS;
      try {
        if (this.#version.containerd === "") this.#version = await runtime.version(signal);
        this.#images = reported(await runtime.listImages(signal));
      } catch {
        delayMs = IMAGES_AGAIN_MS;
      }
      await pause(clock, delayMs, signal);
    }
    await Promise.all([this.#claimsCheck, this.#imagesCheck]);
  }

  async #readClaims(): Promise<void> {
    while (this.#claimsChanged) {
      this.#claimsChanged = false;
      // Values that can't be read now keep their last state until the next attempt.
      const claims = await this.#options.claims().catch(() => this.#claims);
      const isNews = !isDeepStrictEqual(claims.map(essence), this.#claims.map(essence));
      this.#claims = claims;
      if (isNews) this.#options.onChange();
    }
  }

  #conditions(): NodeCondition[] {
    return [
      readiness("RuntimeReady", this.#problems.get("runtime")),
      readiness("NetworkReady", this.#problems.get("network")),
      ...damageCondition(this.#options.damage()),
      this.#diskPressure(),
    ];
  }

  /**
   * Returns the DiskPressure condition. It also covers a journal that can't be written, because pods placed here could
   * then not start.
   */
  #diskPressure(): NodeCondition {
    const type = "DiskPressure";
    const { pressure, reason, message } = this.#options.capacity.report().diskPressure;
    const journal =
      this.#problems.get("assignments") ?? this.#problems.get("states") ?? this.#problems.get("boot");
    if (!pressure && journal !== undefined)
      return { type, status: true, reason: "JournalNotWritten", message: journal };
    // The amount of free space changes all the time, and matters only if it is too low.
    return { type, status: pressure, reason, message: pressure ? message : "" };
  }
}

function texts(amounts: Readonly<Record<string, number>>): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([name, count]) => [name, String(count)]));
}

function encodeClaim({ namespace, name, capacityBytes = 0, usedBytes = 0, users }: ClaimState): ClaimStatus {
  return {
    namespace,
    name,
    capacityBytes: BigInt(capacityBytes),
    usedBytes: BigInt(usedBytes),
    podUids: [...users],
  };
}

/** Returns the state without the used bytes, which change all the time. */
function essence({ usedBytes: _, ...rest }: ClaimState): Omit<ClaimState, "usedBytes"> {
  return rest;
}

/** Returns the condition about damaged files, or an empty list if there are none. */
function damageCondition(summary: string | undefined): NodeCondition[] {
  if (summary === undefined) return [];
  const message = summary.slice(0, CONDITION_MESSAGE_MAX);
  return [{ type: "DataDamaged", status: true, reason: "FilesDamaged", message }];
}

function readiness(type: string, problem: string | undefined): NodeCondition {
  const status = problem === undefined;
  return { type, status, reason: status ? "Ready" : "NotReady", message: problem ?? "" };
}

function reported(images: readonly string[]): readonly string[] {
  return [...images].sort().slice(0, IMAGES_MAX);
}
