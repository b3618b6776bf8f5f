import type { DiskSpace } from "../../capacity/disk-pressure.ts";
import type { Config } from "../../config.ts";
import type { PathSizes } from "../../examine/probe-path.ts";

/** The result of one check. */
export interface Finding {
  /** The name of the check. */
  readonly check: string;
  /** A warning leaves a part of the agent without effect. A failure keeps the agent or every pod from working. */
  readonly result: "ok" | "warning" | "failure";
  /** The state that was found. */
  readonly message: string;
  /** The action that mends it. Undefined: nothing is wrong. */
  readonly remedy?: string;
}

export interface CommandOutcome {
  readonly ok: boolean;
  /** Standard output after success, else the reason of the failure. */
  readonly text: string;
}

/** The host as the checks see it. Nothing that they ask for changes the host. */
export interface CheckedHost {
  /** Undefined: the file does not exist or can't be read. */
  readonly readText: (path: string) => Promise<string | undefined>;
  readonly exists: (path: string) => Promise<boolean>;
  /** Reports whether the filesystem of the path can be written to. */
  readonly isWritable: (path: string) => Promise<boolean>;
  readonly run: (file: string, args: readonly string[]) => Promise<CommandOutcome>;
  /** Returns the system's reason why the port can't be listened on; undefined: it can. */
  readonly listenProblem: (host: string, port: number) => Promise<string | undefined>;
  /** Reports whether the agent itself serves there. */
  readonly agentAnswers: (host: string, port: number) => Promise<boolean>;
  /** Returns the space of the filesystem that holds the directory, or will. Undefined: it can't be read. */
  readonly space: (dir: string) => Promise<DiskSpace | undefined>;
  /** Returns the period in which the certificate of the server is valid. Rejects if the server can't be reached. */
  readonly certificatePeriod: (
    host: string,
    port: number,
  ) => Promise<{ readonly fromMs: number; readonly toMs: number }>;
  /** Reports whether the name server answers a query, with whatever content. */
  readonly nameServerAnswers: (address: string) => Promise<boolean>;
  /** Measures packets to the host. Rejects if no route leads there. */
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
