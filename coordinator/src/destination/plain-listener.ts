import { type ChannelOptions, Server, ServerCredentials } from "@grpc/grpc-js";
import type { HostPort } from "../config.ts";
import { type ServeOptions, serve } from "../rpc/serve.ts";
import type { DestinationOptions } from "./get.ts";
import { destinationService, SharedDestinationService } from "./service.ts";

/** Destination in plain text, as proxies expect of a neighbour on their own host. The configuration allows loopback only. */
export async function startPlainDestination(
  { host, port }: HostPort,
  options: DestinationOptions,
  serving: ServeOptions,
  serverOptions: ChannelOptions,
): Promise<{ readonly address: HostPort; close(): Promise<void> }> {
  const server = new Server(serverOptions);
  // Whoever reaches a loopback address of this host may look up where services answer, and nothing else.
  const neighbour = {
    kind: "user",
    name: "neighbour",
    grants: [{ role: "destination-reader", namespaces: "*" }],
  } as const;
  serve(server, SharedDestinationService, destinationService(options), {
    ...serving,
    identify: () => neighbour,
  });
  const bound = await new Promise<number>((resolve, reject) => {
    const target = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    server.bindAsync(target, ServerCredentials.createInsecure(), (error, boundPort) =>
      error === null ? resolve(boundPort) : reject(error),
    );
  });
  return {
    address: { host, port: bound },
    close: () => new Promise((resolve) => server.tryShutdown(() => resolve())),
  };
}
