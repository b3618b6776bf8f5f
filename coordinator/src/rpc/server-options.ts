import type { ChannelOptions, ServerInterceptor } from "@grpc/grpc-js";

/**
 * The most streams of a connection before one of its calls is authenticated. A client with
 * credentials needs one round trip for that; a joining host needs one call.
 */
export const UNPROVEN_STREAMS = 100;

/**
 * The most streams of an authenticated connection. Proxies use two per service, so the usual 100
 * would limit them to 50 services. The number exceeds `MAX_CALLS_PER_CLIENT`, so that a client with
 * too many calls receives RESOURCE_EXHAUSTED; a client that exceeds this number as well loses its
 * connection.
 */
export const PROVEN_STREAMS = 16_384;

/** The size limit of a message from a client. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** Returns the options of the TLS port for gRPC. `TlsServer` probes silent connections, so grpc-js sends no PINGs. */
export function serverOptions(maxStreams: number, interceptors: ServerInterceptor[] = []): ChannelOptions {
  return {
    interceptors,
    "grpc.max_concurrent_streams": maxStreams,
    "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    // The library's own statistics are unused, and cost 3 KB for each connection.
    "grpc.enable_channelz": 0,
  };
}
