import { hostname } from "node:os";
import { hostPort } from "../config.ts";
import { type GrpcPortOptions, portNames } from "../grpc-port.ts";
import { advertisedAt } from "../reachable-at.ts";
import type { OwnPlace } from "./coordinator-table.ts";

/** Returns the name of this host, and the addresses at which other coordinators reach this one. */
export function ownPlace(options: Pick<GrpcPortOptions, "config" | "hostAddresses">): OwnPlace {
  const addresses = advertisedAt(portNames(options), hostPort(options.config.grpc.listen));
  return { name: hostname(), addresses };
}
