import { channelCredentials } from "@forage/identity/credentials";
import { Client } from "@grpc/grpc-js";
import type { Authority } from "../authority/authority.ts";

export interface CoordinatorChannelsOptions {
  readonly authority: Pick<Authority, "issueCoordinator" | "certPem">;
  /** The id of this coordinator. */
  readonly self: string;
}

const CHANNEL_OPTIONS = {
  "grpc.keepalive_time_ms": 5_000,
  "grpc.keepalive_timeout_ms": 3_000,
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  "grpc.initial_reconnect_backoff_ms": 200,
  "grpc.max_reconnect_backoff_ms": 1_000,
  "grpc.enable_retries": 0,
  "grpc.service_config_disable_resolution": 1,
  "grpc.use_local_subchannel_pool": 1,
};

/**
 * Opens this number of channels to the coordinator at HOST:PORT, with a new certificate of this
 * coordinator. The caller must close them.
 */
export async function openCoordinatorChannels(
  address: string,
  count: number,
  { authority, self }: CoordinatorChannelsOptions,
): Promise<readonly Client[]> {
  const { chainPem, keyPem } = await authority.issueCoordinator(self);
  const credentials = channelCredentials({ caPem: authority.certPem, certPem: chainPem, keyPem });
  return Array.from({ length: count }, () => new Client(address, credentials, CHANNEL_OPTIONS));
}
