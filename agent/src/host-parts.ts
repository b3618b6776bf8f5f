import { join } from "node:path";
import type { AgentParts } from "./agent-parts.ts";
import { readBusyMs, UsageMeter } from "./capacity/usage-meter.ts";
import { HostLogs } from "./host-logs.ts";
import { hostFiles } from "./journal/journal-files.ts";
import { IdentityFiles } from "./link/node-identity.ts";
import { StatusOutbox } from "./link/status-outbox.ts";
import { scrape } from "./metrics/scrape.ts";

type HostParts = Pick<AgentParts, "files" | "identity" | "outbox" | "makeLogs" | "hostUsage" | "scrape">;

/** Returns the agent's parts that any host has: its disk, processors and logs. */
export function hostParts(given: Pick<AgentParts, "config" | "clock" | "log">): HostParts {
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
