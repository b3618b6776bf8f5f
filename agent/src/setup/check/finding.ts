import type { DiskSpace } from "../../capacity/disk-pressure.ts";
import type { Config } from "../../config.ts";
import type { PathSizes } from "../../examine/probe-path.ts";

/** The result of one check. */
export interface Finding {
  /** The name of the check. */
  readonly check: string;
  /**
   * The severity. A warning means that a feature of the agent doesn't work. A failure means that the agent or all pods
   * don't work.
   */
  readonly result: "ok" | "warning" | "failure";
  /** The observed state. */
  readonly message: string;
  /** The action that fixes the problem. Undefined if there is none. */
  readonly remedy?: string;
}

export interface CommandOutcome {
  readonly ok: boolean;
  /** Standard output after success, else the reason of the failure. */
  readonly text: string;
}

/** The host as the checks see it. No function changes the host. */
export interface CheckedHost {
  /** Returns the file's text. Undefined if the file does not exist or can't be read. */
  readonly readText: (path: string) => Promise<string | undefined>;
  readonly exists: (path: string) => Promise<boolean>;
  /** Reports whether the path's file system is writable. */
  readonly isWritable: (path: string) => Promise<boolean>;
  readonly run: (file: string, args: readonly string[]) => Promise<CommandOutcome>;
  /** Returns the system's reason why the port can't be listened on, or undefined if it can. */
  readonly listenProblem: (host: string, port: number) => Promise<string | undefined>;
  /** Reports whether the agent itself listens there. */
  readonly agentAnswers: (host: string, port: number) => Promise<boolean>;
  /**
   * Returns the space of the file system that contains the directory, or will contain it. Undefined if it can't be
   * read.
   */
  readonly space: (dir: string) => Promise<DiskSpace | undefined>;
  /** Returns the period in which the certificate of the server is valid. Rejects if the server can't be reached. */
  readonly certificatePeriod: (
    host: string,
    port: number,
  ) => Promise<{ readonly fromMs: number; readonly toMs: number }>;
  /** Reports whether the name server answers a query, whatever the content. */
  readonly nameServerAnswers: (address: string) => Promise<boolean>;
  /** Measures the sizes of packets that reach the host. Rejects if no route leads there. */
  readonly pathSizes: (host: string, port: number) => Promise<PathSizes>;
  readonly nowMs: () => number;
}

/** Examines one part of the host. */
export interface HostCheck {
  readonly name: string;
  readonly run: (host: CheckedHost, config: Config) => Promise<readonly Omit<Finding, "check">[]>;
}

export function ok(message: string): Omit<Finding, "check"> {
  return { result: "ok", message };
}

export function warning(message: string, remedy: string): Omit<Finding, "check"> {
  return { result: "warning", message, remedy };
}

export function failure(message: string, remedy: string): Omit<Finding, "check"> {
  return { result: "failure", message, remedy };
}
