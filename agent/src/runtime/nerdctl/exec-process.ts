import type { Clock } from "../../clock.ts";
import type { CallLimit } from "../call-limit.ts";
import type { ContainerCgroup } from "../cgroup/container-cgroup.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";

export interface ExecDependencies {
  readonly cli: NerdctlCli;
  readonly clock: Clock;
  readonly limit: CallLimit;
  /** The directory of files that live as long as a call. */
  readonly privateDir: string;
  readonly cgroupOf: (id: string) => Promise<ContainerCgroup | undefined>;
}

/** A `nerdctl exec` that runs. */
export interface ExecProcess {
  write(data: Uint8Array): Promise<void>;
  endInput(): void;
  resize(columns: number, rows: number): void;
  kill(): void;
  /** nerdctl's own exit code (undefined: it was killed) and its last words, once all output was handed on. */
  readonly ended: Promise<{ readonly exitCode: number | undefined; readonly lastWords: string }>;
}
