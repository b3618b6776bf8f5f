import type { Log } from "@forage/common/log";
import type { RecentLines } from "@forage/common/recent-lines";
import type { HostReader } from "./capacity/read-host.ts";
import type { UsageMeter } from "./capacity/usage-meter.ts";
import type { Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import type { DamageReports } from "./damage-reports.ts";
import type { PodDevices } from "./devices/devices.ts";
import type { DiskReserve } from "./disk-reserve.ts";
import type { Gateway } from "./gateway/gateway.ts";
import type { HostFeatures } from "./host-features.ts";
import type { LogUsers } from "./host-logs.ts";
import type { JournalFiles } from "./journal/journal-files.ts";
import type { JournalKey } from "./journal/journal-key.ts";
import type { CoordinatorAddresses } from "./link/coordinator-addresses.ts";
import type { LinkOptions } from "./link/coordinator-link.ts";
import type { IdentityFiles } from "./link/node-identity.ts";
import type { StatusOutbox } from "./link/status-outbox.ts";
import type { Scrape } from "./metrics/scrape.ts";
import type { PodNetwork } from "./network/network.ts";
import type { NetworkFiles } from "./network/network-files.ts";
import type { NodeLogs } from "./node-logs.ts";
import type { RunProbe } from "./probes/run-probe.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";
import type { ServiceNetwork } from "./service-network.ts";
import type { PodVolumes, VolumeEvents } from "./volumes/volumes.ts";

/** The agent's dependencies. `main.ts` passes the real ones, and the simulation its own. */
export interface AgentOptions {
  readonly config: Config;
  readonly version: string;
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  /** An id that is new with every start. */
  readonly sessionId: string;
  /** The disk of everything that the agent stores, except its identity. */
  readonly files: JournalFiles;
  readonly journalKey: JournalKey;
  readonly identity: IdentityFiles;
  readonly reserve: Pick<DiskReserve, "keep">;
  readonly runtime: ContainerRuntime;
  readonly network: PodNetwork;
  readonly networkFiles: NetworkFiles;
  readonly services: ServiceNetwork;
  readonly gateway: Gateway;
  readonly devices: PodDevices;
  readonly makeVolumes: (events: VolumeEvents) => PodVolumes;
  readonly makeLogs: (users: LogUsers) => NodeLogs;
  /** Runs probes and HTTP hooks. */
  readonly probe: RunProbe;
  readonly hostReader: HostReader;
  /** Measures the usage of the whole host. */
  readonly hostUsage: Pick<UsageMeter, "read">;
  /** Requests the metrics of pods that expose them. */
  readonly scrape: Scrape;
  readonly features: HostFeatures;
  /** The addresses at which other hosts reach this host: one for each family, the preferred one first. */
  readonly addresses: readonly string[];
  readonly log: Log;
  /** The newest lines of the log, for support bundles. Default: none are kept. */
  readonly recentLog?: RecentLines;
  readonly damageReports: DamageReports;
  /** Rejects if the host can't belong to the cluster with this authority. */
  readonly mayJoin?: (authority: string) => Promise<void>;
  readonly coordinators: CoordinatorAddresses;
  /** Opens channels to the coordinator. Default: with mutual TLS. */
  readonly openClient?: LinkOptions["openClient"];
  /** The statuses of pods that the coordinator has not received. */
  readonly outbox: StatusOutbox;
  /** The command that starts the agent's own program, for work in separate processes. */
  readonly ownCommand: readonly string[];
}
