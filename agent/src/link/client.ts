import { messageOf } from "@forage/common/message-of";
import { channelCredentials } from "@forage/identity/credentials";
import { AgentServiceClient, EnrollmentServiceClient } from "@forage/proto/forage/agent/v1/agent";
import { Client, type ClientOptions, type ServiceError, status } from "@grpc/grpc-js";
import { type CoordinatorAddress, textOf } from "./coordinator-address.ts";
import { LinkError } from "./link-error.ts";
import type { NodeIdentity } from "./node-identity.ts";

// A cut connection is detected within 15 s, even if there is nothing to send.
const KEEPALIVE_MS = 10_000;
const KEEPALIVE_TIMEOUT_MS = 5_000;
// A snapshot contains all pods of a host. Each may have up to 1.5 MiB of configuration; most have a few KiB.
const MESSAGE_MAX_BYTES = 64 * 1024 * 1024;

export const PINGS: ClientOptions = {
  "grpc.keepalive_time_ms": KEEPALIVE_MS,
  "grpc.keepalive_timeout_ms": KEEPALIVE_TIMEOUT_MS,
  "grpc.keepalive_permit_without_calls": 1,
};

export const CHANNEL_OPTIONS: ClientOptions = {
  "grpc.max_receive_message_length": MESSAGE_MAX_BYTES,
  "grpc.max_send_message_length": MESSAGE_MAX_BYTES,
  // The link creates a new channel for each attempt and does the waiting itself.
  "grpc.enable_retries": 0,
  "grpc.service_config_disable_resolution": 1,
  // Otherwise channels to the same address share their connection, and a renewed certificate would never be used.
  "grpc.use_local_subchannel_pool": 1,
};

/**
 * Opens a channel for the node's stream. `pings`: whether PINGs detect a cut connection. A coordinator that answers
 * heartbeats needs none.
 */
export function openAgentClient(
  address: CoordinatorAddress,
  { pair, caPem }: NodeIdentity,
  { pings }: { readonly pings: boolean },
): AgentServiceClient {
  const credentials = channelCredentials({ caPem, certPem: pair.chainPem, keyPem: pair.keyPem });
  return new AgentServiceClient(textOf(address), credentials, { ...CHANNEL_OPTIONS, ...(pings && PINGS) });
}

/**
 * Opens a channel for Destination only, because thousands of streams must not share a flow-control window with the
 * node's own.
 */
export function openDestinationChannel(address: CoordinatorAddress, { pair, caPem }: NodeIdentity): Client {
  const credentials = channelCredentials({ caPem, certPem: pair.chainPem, keyPem: pair.keyPem });
  return new Client(textOf(address), credentials, { ...CHANNEL_OPTIONS, ...PINGS });
}

export function openEnrollmentClient(address: CoordinatorAddress, caPem: string): EnrollmentServiceClient {
  return new EnrollmentServiceClient(textOf(address), channelCredentials({ caPem }), {
    ...CHANNEL_OPTIONS,
    ...PINGS,
  });
}

export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && typeof error.code === "number" && "details" in error;
}

/** The trailer by which a follower reports that only its connection to the leader was lost. */
const OF_LEADER_KEY = "forage-of-leader";

/** Translates the error of a failed call into the link's error. */
export function toLinkError(error: unknown): LinkError {
  if (error instanceof LinkError) return error;
  if (!isServiceError(error)) return new LinkError("UNAVAILABLE", messageOf(error), { cause: error });
  const { code, details } = error;
  switch (code) {
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
    case status.NOT_FOUND:
    case status.ALREADY_EXISTS:
      return new LinkError("REFUSED", details, { cause: error });
    case status.INVALID_ARGUMENT:
    case status.UNIMPLEMENTED:
      return new LinkError("PROTOCOL", details, { cause: error });
    default:
      return new LinkError("UNAVAILABLE", withClockAdvice(details), {
        cause: error,
        isOfLeader: code === status.UNAVAILABLE && error.metadata.get(OF_LEADER_KEY).length > 0,
      });
  }
}

// OpenSSL's messages for a certificate of the coordinator or its authority that is not valid at this host's time.
const OUT_OF_TIME = /certificate (is not yet valid|has expired)|CERT_NOT_YET_VALID|CERT_HAS_EXPIRED/i;

/** Prepends advice to compare clocks if a TLS connection failed because of a certificate's dates. */
function withClockAdvice(details: string): string {
  if (!OUT_OF_TIME.test(details)) return details;
  const advice =
    "the certificate of the coordinator or of its authority is not valid by this host's clock: compare the clocks of both hosts and " +
    "set the one that is wrong; the coordinator makes itself a new certificate soon after its clock is set; this host's pods keep running";
  return `${advice} (${details})`;
}
