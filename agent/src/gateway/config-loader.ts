import { readFile } from "node:fs/promises";
import type { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { type Clock, pause } from "../clock.ts";
import type { ConfigFiles } from "./config-files.ts";
import { clusterName, type ServicePortRef } from "./envoy/backends.ts";
import { speaksHttp2 } from "./envoy/clusters.ts";
import type { ResourceFile } from "./envoy/json.ts";
import type { EnvoyAdmin, Subscription, SubscriptionState } from "./envoy-admin.ts";
import { clustersFile, endpointsFile, type GatewayFiles, type RenderOptions } from "./render-gateway.ts";

export interface ConfigLoaderOptions {
  readonly admin: Pick<EnvoyAdmin, "subscriptions">;
  readonly files: ConfigFiles;
  readonly render: RenderOptions;
  readonly clock: Clock;
  /** Returns Envoy's last error about a file that it rejected. */
  readonly reason: () => Promise<string>;
  /** Called before Envoy has to watch this many files. Rejects if the kernel's limit is too low. */
  readonly makeRoom: (files: number) => Promise<void>;
}

export type Outcome =
  | { readonly type: "applied" }
  | { readonly type: "refused"; readonly subscription: Subscription; readonly reason: string };

type Services = ReadonlyMap<string, ServiceState>;

const RECHECK_MS = 5;
const RECHECK_MAX_MS = 200;
/** Everything that Envoy needs comes from files, so it never waits for anything slow. */
const ANSWER_MAX_MS = 30_000;

/**
 * Applies a configuration without gaps: targets are added before the routes that use them, and removed after them. Each
 * file is applied before the next is written. A file that Envoy rejects changes nothing and ends the attempt.
 */
export class ConfigLoader {
  readonly #options: ConfigLoaderOptions;
  /** The clusters in Envoy's file, with the service port of each. */
  #clusters: ReadonlyMap<string, ServicePortRef> = new Map();
  /** The clusters with which Envoy uses HTTP/2. */
  #http2: ReadonlySet<string> = new Set();
  /** Envoy's last known state. Each query costs Envoy time that grows with the number of services. */
  #known: ReadonlyMap<Subscription, SubscriptionState> | undefined;

  constructor(options: ConfigLoaderOptions) {
    this.#options = options;
  }

  /** Adopts a proxy that an earlier agent configured. The targets of its routes stay until the routes change. */
  async adopt(): Promise<void> {
    const text = await readFile(this.#options.render.places.clusters, "utf8").catch(() => "");
    const names = [...text.matchAll(/"name":"([^"/\\]+)\/([^"/\\]+)\/(\d+)"/g)];
    this.#clusters = new Map(
      names.map(([, namespace = "", service = "", port = ""]) => {
        const ref = { namespace, service, port: Number(port) };
        return [clusterName(ref), ref];
      }),
    );
  }

  /** Writes the initial files of a proxy that doesn't run yet. */
  async prepare(next: GatewayFiles, services: Services): Promise<void> {
    const { files, render } = this.#options;
    const { places } = render;
    await this.#putDependencies(next, services);
    this.#clusters = next.clusters;
    await files.put(places.clusters, this.#clustersFile(services));
    await files.put(places.routes("http"), next.routes.http);
    await files.put(places.routes("https"), next.routes.https);
    await files.put(places.listeners, next.listeners);
  }

  /** Applies the configuration. Rejects if Envoy doesn't respond. */
  async load(next: GatewayFiles, services: Services): Promise<Outcome> {
    const { files } = this.#options;
    await this.#putDependencies(next, services);
    this.#clusters = new Map([...this.#clusters, ...next.clusters]);
    const clusters = await this.#load("clusters", this.#clustersFile(services));
    if (clusters.type === "refused") return clusters;
    // Serve a port, or a name on it, before a redirect can lead there.
    const encrypted = await this.#load("https", next.routes.https);
    if (encrypted.type === "refused") return encrypted;
    // A listener that can't be bound must not prevent changes of the others.
    const listeners = await this.#load("listeners", next.listeners);
    // Envoy reads a listener's routes for the first time when the listener is added.
    for (const name of ["https", "http"] as const) {
      const routes = await this.#load(name, next.routes[name]);
      if (routes.type === "refused") return routes;
    }
    this.#clusters = next.clusters;
    const fewer = await this.#load("clusters", this.#clustersFile(services));
    await files.keepOnly(this.#pathsOf(next));
    return listeners.type === "refused" ? listeners : fewer;
  }

  /** Updates only the given services (`namespace/name`). */
  async updateServices(changed: ReadonlySet<string>, services: Services): Promise<void> {
    let renamed = false;
    for (const [name, ref] of this.#clusters) {
      const key = `${ref.namespace}/${ref.service}`;
      if (!changed.has(key)) continue;
      await this.#putEndpoints(name, ref, services);
      renamed ||= this.#http2.has(name) !== speaksHttp2(ref, services.get(key));
    }
    // Only a change of a port's name requires another cluster.
    if (renamed) await this.#load("clusters", this.#clustersFile(services));
  }

  #clustersFile(services: Services): ResourceFile {
    const http2 = [...this.#clusters].filter(([, ref]) =>
      speaksHttp2(ref, services.get(`${ref.namespace}/${ref.service}`)),
    );
    this.#http2 = new Set(http2.map(([name]) => name));
    return clustersFile(this.#clusters, services, this.#options.render);
  }

  async #putDependencies(next: GatewayFiles, services: Services): Promise<void> {
    const { files, render, makeRoom } = this.#options;
    await makeRoom(this.#clusters.size + next.clusters.size + next.secrets.size);
    for (const [name, ref] of new Map([...this.#clusters, ...next.clusters]))
      await this.#putEndpoints(name, ref, services);
    for (const [id, secret] of next.secrets) await files.put(render.places.secret(id), secret);
  }

  async #putEndpoints(name: string, ref: ServicePortRef, services: Services): Promise<void> {
    const { files, render } = this.#options;
    await files.put(render.places.endpoints(name), endpointsFile(ref, services, render));
  }

  async #load(name: Subscription, file: ResourceFile): Promise<Outcome> {
    const { admin, files } = this.#options;
    const path = this.#pathOf(name);
    this.#known ??= await admin.subscriptions();
    const before = this.#known.get(name);
    const changed = await files.put(path, file);
    // Envoy reads routes only once a listener needs them.
    if (before === undefined || before.version === file.version) return { type: "applied" };
    // The file exists, but Envoy rejected it or missed the notification.
    if (!changed) await files.write(path, file);
    return this.#answer(name, file, before.rejected);
  }

  async #answer(name: Subscription, file: ResourceFile, rejected: number): Promise<Outcome> {
    const { admin, clock, reason } = this.#options;
    const deadlineMs = clock.monotonicMs() + ANSWER_MAX_MS;
    for (let waitMs = RECHECK_MS; ; waitMs = Math.min(RECHECK_MAX_MS, waitMs * 2)) {
      this.#known = await admin.subscriptions();
      const now = this.#known.get(name);
      if (now?.version === file.version) return { type: "applied" };
      if (now !== undefined && now.rejected > rejected)
        return { type: "refused", subscription: name, reason: await reason() };
      if (clock.monotonicMs() > deadlineMs)
        throw new Error(`Envoy has not read its new ${name} for ${ANSWER_MAX_MS / 1000} s`);
      await pause(clock, waitMs, new AbortController().signal);
    }
  }

  #pathOf(name: Subscription): string {
    const { places } = this.#options.render;
    switch (name) {
      case "listeners":
        return places.listeners;
      case "clusters":
        return places.clusters;
      case "http":
      case "https":
        return places.routes(name);
      default:
        return name satisfies never;
    }
  }

  #pathsOf({ clusters, secrets }: GatewayFiles): Set<string> {
    const { places } = this.#options.render;
    return new Set([
      ...[...clusters.keys()].map((name) => places.endpoints(name)),
      ...[...secrets.keys()].map((id) => places.secret(id)),
    ]);
  }
}
