import type { RunOptions, RunResult } from "../lib/run.ts";
import type { LabHost } from "./lab-plan.ts";
import type { SlowLink } from "./lab-state.ts";

export interface BootOptions {
  /** The network namespace with the lab's bridges. */
  readonly network: string;
  /** The bridge that the host is connected to. */
  readonly bridge: string;
  /** A directory that the host sees, read-only, as PACKAGES_DIR. */
  readonly packages: string;
  readonly signal?: AbortSignal;
}

/** The directory of packages on each host. */
export const PACKAGES_DIR = "/srv/forage-packages";

/** One kind of booted host. All kinds run the same image with the same programs, and pass the same tests. */
export interface HostDriver {
  readonly kind: string;
  /** Installs what this kind needs, and builds the image unless it is in the cache. */
  prepare(report: (detail: string) => void): Promise<void>;
  /** Starts the host, with a new disk the first time, and returns when its systemd has started everything. */
  boot(host: LabHost, options: BootOptions): Promise<void>;
  /** Asks the host to shut down, and returns when it is off. */
  shutDown(host: LabHost): Promise<void>;
  /** Ends the host as a power failure does. Returns when it is off. */
  powerOff(host: LabHost): Promise<void>;
  isRunning(host: LabHost): boolean;
  /** Runs a program on the host, as root. */
  exec(host: LabHost, argv: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Returns the command line that runs a program on the host with the caller's terminal. */
  terminalCommand(host: LabHost, argv: readonly string[]): readonly string[];
  /** Copies a file of this machine to a path on the host's disk. */
  copy(host: LabHost, from: string, to: string): Promise<void>;
  /** Delays and drops packets of the host, which runs; undefined ends it. */
  slow(host: LabHost, link: SlowLink | undefined): Promise<void>;
  /** The interface in the lab's network namespace that leads to the host. */
  portOf(host: LabHost): string;
  /** The output of the host's console. */
  consoleOf(host: LabHost): string;
  /** Removes everything of this kind in the lab, also what a crash has left. Idempotent. */
  removeAll(): Promise<void>;
}
