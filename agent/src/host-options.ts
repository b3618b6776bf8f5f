import { join } from "node:path";
import type { AgentOptions } from "./agent-options.ts";
import { readBusyMs, UsageMeter } from "./capacity/usage-meter.ts";
import { HostLogs } from "./host-logs.ts";
import { hostFiles } from "./journal/journal-files.ts";
import { IdentityFiles } from "./link/node-identity.ts";
import { StatusOutbox } from "./link/status-outbox.ts";
import { scrape } from "./metrics/scrape.ts";

type HostOptions = Pick<AgentOptions, "files" | "identity" | "outbox" | "makeLogs" | "hostUsage" | "scrape">;

/** Returns the options that are the same for an agent on any host: disk, processors and logs. */
export function hostOptions(given: Pick<AgentOptions, "config" | "clock" | "log">): HostOptions {
  const { config, clock, log } = given;
  const { dataDir, logs } = config;
  return {
    files: hostFiles,
    identity: new IdentityFiles(join(dataDir, "identity")),
    outbox: new StatusOutbox(),
    makeLogs: (users) => new HostLogs({ ...users, clock, log, dataDir, limitBytes: logs.nodeLimitBytes }),
    hostUsage: new UsageMeter({ clock, procDir: "/proc", readBusyMs }),
    scrape,
  };
}
