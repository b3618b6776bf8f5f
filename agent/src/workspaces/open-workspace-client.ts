import { channelCredentials } from "@forage/identity/credentials";
import { WorkspaceNodeServiceClient } from "@forage/proto/forage/workspaces/v1/workspaces";
import { CHANNEL_OPTIONS, PINGS } from "../link/client.ts";
import { type CoordinatorAddress, textOf } from "../link/coordinator-address.ts";
import type { NodeIdentity } from "../link/node-identity.ts";

/**
 * The amount of data that the coordinator may send before this side has read it. With HTTP/2's default, each 64 KiB
 * would wait for a round trip.
 */
const CONTENT_WINDOW_BYTES = 1024 * 1024;

/**
 * Opens a channel for workspaces only, because archives must not share a flow-control window with the node's own
 * stream.
 */
export function openWorkspaceClient(
  address: CoordinatorAddress,
  { pair, caPem }: NodeIdentity,
): WorkspaceNodeServiceClient {
  const credentials = channelCredentials({ caPem, certPem: pair.chainPem, keyPem: pair.keyPem });
  const window = { "grpc-node.flow_control_window": CONTENT_WINDOW_BYTES };
  return new WorkspaceNodeServiceClient(textOf(address), credentials, {
    ...CHANNEL_OPTIONS,
    ...PINGS,
    ...window,
  });
}
