import type { ChannelOptions, ServerInterceptor } from "@grpc/grpc-js";

/**
 * Streams that a connection may have before one of its calls proves who makes it: a client with credentials needs one round
 * trip to prove itself, a host that joins needs one call.
 */
export const UNPROVEN_STREAMS = 100;

/**
 * Streams that a connection of a known client may have. Proxies hold two per service, so the usual 100 would cap them at 50
 * services. It is above `MAX_CALLS_PER_CLIENT`, so that a client that opens too many is answered RESOURCE_EXHAUSTED by us; a
 * client that disregards this number as well loses its connection.
 */
export const PROVEN_STREAMS = 16_384;

const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** Options of a port that speaks gRPC. */
export function serverOptions(maxStreams: number, interceptors: ServerInterceptor[] = []): ChannelOptions {
  return {
    interceptors,
    "grpc.max_concurrent_streams": maxStreams,
    "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    "grpc.keepalive_time_ms": 20_000,
    "grpc.keepalive_timeout_ms": 10_000,
    // The library's own statistics are not read anywhere, and they cost 3 KB for each connection.
    "grpc.enable_channelz": 0,
  };
}
