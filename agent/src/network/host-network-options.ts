import type { Log } from "@forage/common/log";
import type { Clock } from "../clock.ts";
import type { NoteDamage } from "../damage-reports.ts";
import type { PodAccess } from "./access-rules.ts";
import type { PortProbe, PortRange } from "./port-allocator.ts";
import type { RunCommand } from "./run-command.ts";

export interface HostNetworkOptions {
  /** 1 to 8 lower-case letters or digits, unique on the host. */
  readonly instance: string;
  /** The directory of this network only, created if missing. It must be on this host's disk and not shared. */
  readonly dataDir: string;
  readonly podCidr: string;
  /** The IPv6 range of pods. If set, pods have an address of each family. */
  readonly podCidr6?: string | undefined;
  readonly hostPorts: PortRange;
  /** Limits what pods can reach. Undefined: no limits and no rules. */
  readonly access?: PodAccess;
  readonly cniDirectory: string;
  readonly poolSize: number;
}

export interface HostNetworkDependencies {
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly run: RunCommand;
  readonly probePort: PortProbe;
  readonly log: Pick<Log, "info" | "warn">;
  readonly noteDamage: NoteDamage;
}
