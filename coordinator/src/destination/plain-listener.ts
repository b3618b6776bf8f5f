import { type ChannelOptions, Server, ServerCredentials } from "@grpc/grpc-js";
import type { HostPort } from "../config.ts";
import { type ServeOptions, serve } from "../rpc/serve.ts";
import type { DestinationOptions } from "./get.ts";
import { destinationService, SharedDestinationService } from "./service.ts";

export interface PlainDestination {
  readonly address: HostPort;
  /** Stops accepting, asks clients to leave, and cuts those off that are still there after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Destination in plain text, as proxies expect of a neighbour on their own host. The configuration allows loopback only. */
export async function startPlainDestination(
  { host, port }: HostPort,
  options: DestinationOptions,
  serving: ServeOptions,
  serverOptions: ChannelOptions,
): Promise<PlainDestination> {
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
    close: (graceMs) => shutDown(server, graceMs),
  };
}

/** The library waits for clients that stopped reading, and at times for one that has just gone; neither may hold up the end. */
function shutDown(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      server.forceShutdown();
      resolve();
    }, graceMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
