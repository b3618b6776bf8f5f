import type { Clock } from "../../clock.ts";
import type { CallLimit } from "../call-limit.ts";
import type { ContainerCgroup } from "../cgroup/container-cgroup.ts";
import type { ExecStarts } from "./exec-starts.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";

export interface ExecDependencies {
  readonly cli: NerdctlCli;
  readonly clock: Clock;
  readonly limit: CallLimit;
  readonly starts: ExecStarts;
  /** The directory of files that exist only during a call. */
  readonly privateDir: string;
  readonly cgroupOf: (id: string) => Promise<ContainerCgroup | undefined>;
}

/** A running `nerdctl exec`. */
export interface ExecProcess {
  write(data: Uint8Array): Promise<void>;
  endInput(): void;
  resize(columns: number, rows: number): void;
  kill(): void;
  /**
   * Resolves once all output was delivered, with nerdctl's last message and its exit code (undefined if it was killed).
   */
  readonly ended: Promise<{ readonly exitCode: number | undefined; readonly lastWords: string }>;
}
