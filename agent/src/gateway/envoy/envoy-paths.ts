import { join } from "node:path";
import type { JsonObject } from "./json.ts";
import { shortHash } from "./json.ts";

/** Returns the paths of Envoy's files, below one directory that only Envoy and the agent can read. */
export class EnvoyPaths {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  get bootstrap(): string {
    return join(this.dir, "bootstrap.json");
  }

  get adminSocket(): string {
    return join(this.dir, "admin.sock");
  }

  get listeners(): string {
    return join(this.dir, "listeners.json");
  }

  get clusters(): string {
    return join(this.dir, "clusters.json");
  }

  /** The file with the hosts that Envoy rejected, for the next agent. */
  get rejectedHosts(): string {
    return join(this.dir, "held-back.json");
  }

  /** Returns the path of the routes for plain HTTP ("http") or HTTPS ("https"). */
  routes(name: "http" | "https"): string {
    return join(this.dir, `routes-${name}.json`);
  }

  get endpointsDir(): string {
    return join(this.dir, "endpoints");
  }

  get secretsDir(): string {
    return join(this.dir, "secrets");
  }

  endpoints(cluster: string): string {
    return join(this.endpointsDir, `${shortHash(cluster)}.json`);
  }

  secret(certificateId: string): string {
    return join(this.secretsDir, `${shortHash(certificateId)}.json`);
  }
}

/** Returns a configuration source. Envoy reads the file again whenever another file is renamed to its path. */
export function fileSource(path: string): JsonObject {
  return { resource_api_version: "V3", path_config_source: { path } };
}
