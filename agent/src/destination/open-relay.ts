import { type Clock, pause } from "../clock.ts";
import { openDestinationChannel } from "../link/client.ts";
import type { CoordinatorAddresses } from "../link/coordinator-addresses.ts";
import type { IdentityFiles } from "../link/node-identity.ts";
import { clientsAt, type PodAddresses } from "./clients-at.ts";
import { DestinationRelay } from "./relay.ts";
import { RelayServer } from "./relay-server.ts";
import { Upstream } from "./upstream.ts";

export interface OpenRelayOptions {
  readonly port: number;
  /** The addresses of the pods' bridge and of loopback. */
  readonly addresses: readonly string[];
  readonly coordinators: Pick<CoordinatorAddresses, "current">;
  readonly identity: Pick<IdentityFiles, "load">;
  readonly nodeName: string;
  /** Returns the pods that run on this host at present. */
  readonly pods: () => readonly PodAddresses[];
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly onProblem: (event: string, error: unknown) => void;
}

/** After a boot, the bridge's address exists only once the network has been set up. */
const LISTEN_AGAIN_MS = 500;
const LISTEN_AGAIN_CAP_MS = 10_000;

/**
 * Serves Destination to this host's proxies. Returns at once; listening on an address that doesn't exist yet is
 * retried.
 */
export function openRelay(options: OpenRelayOptions): { close(): Promise<void> } {
  const { coordinators, identity, nodeName, pods, clock, random } = options;
  const upstream = new Upstream(async () => {
    const own = await identity.load();
    if (own === undefined) throw new Error("this host has not joined a cluster");
    return openDestinationChannel(coordinators.current, own);
  });
  const relay = new DestinationRelay({ open: upstream.open, nodeName, clock, random });
  const closing = new AbortController();
  const clientAt = clientsAt(pods, clock);
  const listening = options.addresses.map((address) =>
    listen({ address, port: options.port, relay, clientAt, clock }, options, closing.signal),
  );
  return {
    close: async () => {
      closing.abort();
      relay.close();
      await Promise.all(listening.map(async (server) => (await server)?.close()));
      upstream.close();
    },
  };
}

async function listen(
  at: Parameters<typeof RelayServer.open>[0],
  { clock, onProblem }: OpenRelayOptions,
  signal: AbortSignal,
): Promise<RelayServer | undefined> {
  for (let waitMs = LISTEN_AGAIN_MS; !signal.aborted; waitMs = Math.min(LISTEN_AGAIN_CAP_MS, waitMs * 2)) {
    try {
      return await RelayServer.open(at);
    } catch (error) {
      if (waitMs >= LISTEN_AGAIN_CAP_MS) onProblem("destination-not-served", error);
    }
    await pause(clock, waitMs, signal);
  }
  return undefined;
}
