import { randomUUID } from "node:crypto";
import type { Client } from "@grpc/grpc-js";
import { type CoordinatorChannelsOptions, openCoordinatorChannels } from "../peers/coordinator-channels.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import type { SupportSources } from "./own-files.ts";

export interface SupportSourcesOptions
  extends Omit<SupportSources, "startedMs" | "nowMs" | "storeState">,
    Pick<CoordinatorChannelsOptions, "authority"> {
  readonly store: Pick<Store, "revision" | "health">;
  readonly clock: Pick<Clock, "nowMs">;
}

export interface LeaderSupport extends SupportSources {
  /** Returns a channel to a follower at HOST:PORT, which the caller must close. */
  readonly connect: (address: string) => Promise<Client>;
}

/** Returns the sources of a leader's support bundles. */
export function supportSources(options: SupportSourcesOptions): LeaderSupport {
  const { config, version, recentLog, metrics, status, workspaces, store, clock, authority } = options;
  // Followers accept the certificate of any coordinator.
  const self = randomUUID();
  return {
    ...{ config, version, recentLog, metrics, status, workspaces },
    startedMs: clock.nowMs(),
    nowMs: clock.nowMs,
    storeState: () => ({ revision: store.revision, health: store.health() }),
    connect: async (address) => {
      const [client] = await openCoordinatorChannels(address, 1, { authority, self });
      if (client === undefined) throw new Error("no channel was opened");
      return client;
    },
  };
}
