import type { ChannelOptions } from "@grpc/grpc-js";

/** Proxies hold two streams per service, so the usual 100 would cap them at 50 services. */
const maxStreamsPerConnection = 10_000;
const maxMessageBytes = 4 * 1024 * 1024;

/** Of every port that speaks gRPC. */
export const serverOptions: ChannelOptions = {
  "grpc.max_concurrent_streams": maxStreamsPerConnection,
  "grpc.max_receive_message_length": maxMessageBytes,
  "grpc.keepalive_time_ms": 20_000,
  "grpc.keepalive_timeout_ms": 10_000,
  // Nobody asks for the library's own statistics, and they cost 3 KB for each connection.
  "grpc.enable_channelz": 0,
};
