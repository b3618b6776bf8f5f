import type { Log } from "@forage/common/log";
import { PassConnections } from "../http/passed/pass-connections.ts";
import type { PassCounts } from "../http/passed/pass-counts.ts";
import type { PassHttpOptions } from "../http/passed/pass-http.ts";
import type { Leader } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { type AccessPorts, openAccessPorts } from "../workspaces/access/access-ports.ts";
import type { WorkspaceSettings } from "../workspaces/settings.ts";

export interface FollowedAccessOptions extends Pick<PassHttpOptions, "client"> {
  readonly settings: WorkspaceSettings;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn" | "info">;
  readonly passCounts: PassCounts;
}

/** The ports of workspaces on a follower. */
export interface FollowedAccess {
  readonly ports: AccessPorts;
  /**
   * Ends connections that were passed on to a former leader, which may have been lost without
   * notice.
   */
  observe(leader: Leader | undefined): void;
  /** Ends all connections that are passed on. The ports stay open. */
  readonly end: () => void;
  close(): Promise<void>;
}

/**
 * Opens the ports of workspaces, and passes their connections on: the leader tracks who uses a
 * workspace, and which links were used.
 */
export async function openFollowedAccess({
  settings,
  clock,
  log,
  client,
  passCounts,
}: FollowedAccessOptions): Promise<FollowedAccess> {
  const { ingress, ssh } = settings;
  const passes = {
    ingress: new PassConnections({
      ...{ client, port: "ingress", maxOpen: ingress?.connections ?? 0, count: passCounts.ingress },
      refusal: unavailable,
    }),
    ssh: new PassConnections({
      ...{ client, port: "ssh", maxOpen: ssh?.connections ?? 0, count: passCounts.ssh },
    }),
  };
  const end = (): void => {
    for (const pass of Object.values(passes)) pass.end();
  };
  const ports = await openAccessPorts({
    ...{ settings, clock, log },
    pass: (door, connection) => passes[door].pass(connection),
  });
  let holder: string | undefined;
  return {
    ports,
    observe: (leader) => {
      if (leader === undefined) return;
      if (holder !== undefined && holder !== leader.holder) end();
      holder = leader.holder;
    },
    end,
    close: async () => {
      await Promise.all([ports.ingress?.close(), ports.ssh?.close()]);
    },
  };
}

/** Returns an HTTP answer to an unread request. */
function unavailable(reason: string): string {
  const body = `${reason}\n`;
  const head = [
    "HTTP/1.1 503 Service Unavailable",
    "content-type: text/plain; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    "retry-after: 1",
    "connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}
