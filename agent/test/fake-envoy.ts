import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { EnvoyPaths } from "../src/gateway/envoy/envoy-paths.ts";
import type { EnvoyAdmin, Subscription, SubscriptionState } from "../src/gateway/envoy-admin.ts";
import type { ProxyProgram } from "../src/gateway/proxy-program.ts";

/** A simulated Envoy that accepts every file at once, and outlives agents. */
export class FakeEnvoy implements ProxyProgram {
  readonly name = "envoy";
  readonly places: EnvoyPaths;
  starts = 0;
  readonly #subscriptions: Readonly<Record<Subscription, string>>;
  #runs = false;

  constructor(places: EnvoyPaths) {
    this.places = places;
    this.#subscriptions = {
      ...{ listeners: places.listeners, clusters: places.clusters },
      ...{ http: places.routes("http"), https: places.routes("https") },
    };
  }

  readonly admin: EnvoyAdmin = {
    live: async () => this.#runs,
    version: async () => "1.0.0",
    subscriptions: async () => {
      const found = new Map<Subscription, SubscriptionState>();
      for (const [name, path] of Object.entries(this.#subscriptions)) {
        const { version_info: version } = JSON.parse(await readFile(path, "utf8"));
        found.set(name as Subscription, { version, rejected: 0 });
      }
      return found;
    },
    listeners: async () => new Set(["http"]),
    metrics: async () => "",
    connections: async () => 0,
    traffic: async () => ({ requests: 0, errors: 0 }),
    reopenLogs: async () => undefined,
    drain: async () => undefined,
    quit: async () => undefined,
  };

  /** Returns the content of all endpoint files, or undefined if there are none. */
  async endpoints(): Promise<string | undefined> {
    const { endpointsDir } = this.places;
    const names = await readdir(endpointsDir).catch(() => []);
    const texts = await Promise.all(names.sort().map((name) => readFile(join(endpointsDir, name), "utf8")));
    return texts.length === 0 ? undefined : texts.join("\n");
  }

  reboot(): void {
    this.#runs = false;
  }

  async isRunning(): Promise<boolean> {
    return this.#runs;
  }

  async start(): Promise<void> {
    this.starts += 1;
    this.#runs = true;
  }

  async kill(): Promise<void> {
    this.#runs = false;
  }

  async lastWords(): Promise<string> {
    return "";
  }

  onExit(): () => void {
    return () => undefined;
  }
}
