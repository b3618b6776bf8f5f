import type { RunOptions, RunResult } from "../lib/run.ts";
import type { LabHost } from "./lab-plan.ts";
import type { SlowLink } from "./lab-state.ts";

/** The hosts that a disconnected host can still reach; "all" if it isn't disconnected. */
export type Reach = "all" | readonly LabHost[];

export interface BootOptions {
  readonly reach: Reach;
  /** A directory that the host sees, read-only, as PACKAGES_DIR. */
  readonly packages: string;
  readonly signal?: AbortSignal;
}

/** The directory of packages on each host. */
export const PACKAGES_DIR = "/srv/forage-packages";

/** A kind of booted host. All kinds run the same image with the same programs, and pass the same tests. */
export interface HostDriver {
  readonly kind: string;
  /**
   * The factor by which tests on these hosts wait longer than on the fastest kind. It doesn't apply to printed times.
   */
  readonly patience: number;
  /** The address of this machine in the network of the hosts. It ends in 1. */
  readonly gateway: string;
  /**
   * Installs what this kind needs, and builds the image unless it is in the cache. Throws if no such host can boot on
   * this machine.
   */
  prepare(report: (detail: string) => void): Promise<void>;
  /** Makes the network of the lab, unless it exists. */
  createNetwork(): Promise<void>;
  /** Returns the command line that runs a program of this machine in the hosts' network. */
  besideCommand(argv: readonly string[]): readonly string[];
  /** Starts the host, with a new disk the first time. Returns when its systemd has started everything. */
  boot(host: LabHost, options: BootOptions): Promise<void>;
  /** Shuts the host down, and returns when it is off. */
  shutDown(host: LabHost): Promise<void>;
  /** Ends the host like a power failure. Returns when it is off. */
  powerOff(host: LabHost): Promise<void>;
  isRunning(host: LabHost): Promise<boolean>;
  /** Runs a program on the host, as root. */
  exec(host: LabHost, argv: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Returns the command line that runs a program on the host with the caller's terminal. */
  terminalCommand(host: LabHost, argv: readonly string[]): readonly string[];
  /** Copies a file of this machine to a path on the host's disk. */
  copy(host: LabHost, from: string, to: string): Promise<void>;
  /** Delays and drops packets of the running host; `undefined` ends that. */
  slow(host: LabHost, link: SlowLink | undefined): Promise<void>;
  /** Disconnects the running host from all hosts but these, or reconnects it. */
  connect(host: LabHost, reach: Reach): Promise<void>;
  /** Updates the running host's view of the directory of packages. */
  syncPackages(host: LabHost): Promise<void>;
  /** Returns the output of the host's console. */
  consoleOf(host: LabHost): string;
  /** Removes everything of this kind in the lab, including the remains of a crash. Idempotent. */
  removeAll(): Promise<void>;
}
