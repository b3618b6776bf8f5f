import { existsSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type BackOff, backOffMs } from "@forage/common/back-off";
import { messageOf } from "@forage/common/message-of";
import type {
  GatewayHostProblem,
  GatewayStatus,
  GatewayTraffic,
  GatewayUpdate,
} from "@forage/proto/forage/agent/v1/agent";
import { type Clock, pause } from "../clock.ts";
import type { KnownServices } from "../services/known-services.ts";
import { ConfigApplier, type Problem } from "./config-applier.ts";
import { ConfigFiles } from "./config-files.ts";
import { ConfigLoader } from "./config-loader.ts";
import { type BootstrapOptions, bootstrapOf } from "./envoy/bootstrap.ts";
import { shortHash } from "./envoy/json.ts";
import type { EnvoyAdmin } from "./envoy-admin.ts";
import type { Gateway } from "./gateway.ts";
import type { KnownGateway } from "./known-gateway.ts";
import type { ProxyProgram } from "./proxy-program.ts";
import { rejectionIn } from "./rejection.ts";
import type { RenderOptions } from "./render-gateway.ts";
import { rotateLog } from "./rotate-log.ts";
import { ensureWatchLimit } from "./watch-room.ts";

export interface HostGatewayOptions {
  readonly known: KnownGateway;
  readonly services: Pick<KnownServices, "services" | "subscribe" | "loaded">;
  readonly proxy: ProxyProgram;
  readonly admin: EnvoyAdmin;
  readonly render: RenderOptions;
  readonly bootstrap: BootstrapOptions;
  readonly clock: Clock;
  readonly onEvent: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The interval of checks for the end of a proxy that an earlier agent started. */
const CHECK_EVERY_MS = 500;
const ACCESS_LOG_BYTES_MAX = 64 * 1024 * 1024;
/** Applies to a port in use and to a proxy that doesn't start. */
const RETRY: BackOff = { baseMs: 1_000, capMs: 30_000 };
const LIVE_WITHIN_MS = 60_000;
const LIVE_CHECK_MS = 20;
const DRAIN_MAX_MS = 10_000;
const DRAIN_CHECK_MS = 100;
const MESSAGE_LENGTH_MAX = 2_000;
/** Reading two of Envoy's statistics makes it search all of them, and heartbeats are more frequent than graphs need. */
const TRAFFIC_EVERY_MS = 10_000;

const NO_FILES =
  "Envoy has ended, and its configuration is lost: it is started once the coordinator sends the configuration again";
const NOT_OPEN = "Envoy has not opened the HTTP port yet";
const LOST_STATE =
  "the stored configuration is lost: Envoy serves by its own files until the coordinator sends the configuration again";

/**
 * Manages a gateway with Envoy. One loop compares the desired and the observed state and acts. Everything else only
 * wakes the loop.
 */
export class HostGateway implements Gateway {
  readonly #options: HostGatewayOptions;
  readonly #closing = new AbortController();
  readonly #listeners = new Set<(status: GatewayStatus) => void>();
  readonly #stop: (() => void)[] = [];
  #status: GatewayStatus | undefined;
  #running: Promise<void> | undefined;
  #wake: () => void = () => undefined;
  #awake = true;
  #viewChanged = true;
  /**
   * Whether a report was sent since the coordinator's last update. The coordinator waits for one even if nothing
   * changed.
   */
  #reported = false;
  #servicesChanged = new Set<string>();
  #config: { readonly loader: ConfigLoader; readonly hosts: ConfigApplier } | undefined;
  #files: ConfigFiles | undefined;
  #proxyVersion = "";
  #traffic: { readonly readMs: number; readonly totals: GatewayTraffic | undefined } | undefined;
  /** Whether a proxy may be running whose end has to be detected. */
  #hasProxy = false;
  #failures = 0;
  #againAtMs = 0;

  constructor(options: HostGatewayOptions) {
    this.#options = options;
  }

  start(): void {
    const { known, services, proxy } = this.#options;
    this.#stop.push(
      known.subscribe(() => {
        this.#viewChanged = true;
        this.#reported = false;
        this.#againAtMs = 0;
        this.#rouse();
      }),
      services.subscribe((changed) => {
        if (known.gateway === "") return;
        for (const key of changed) this.#servicesChanged.add(key);
        this.#rouse();
      }),
    );
    this.#stop.push(proxy.onExit(() => this.#rouse()));
    this.#running = this.#run(this.#closing.signal);
  }

  restart(): void {
    this.#options.known.restart();
  }

  apply(update: GatewayUpdate): void {
    this.#options.known.apply(update);
  }

  status(): GatewayStatus | undefined {
    return this.#status;
  }

  subscribe(listener: (status: GatewayStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async metrics(): Promise<string | undefined> {
    if (this.#config === undefined) return undefined;
    return this.#options.admin.metrics().catch(() => undefined);
  }

  async traffic(): Promise<GatewayTraffic | undefined> {
    if (this.#config === undefined) return undefined;
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#traffic === undefined || nowMs - this.#traffic.readMs >= TRAFFIC_EVERY_MS) {
      const found = await this.#options.admin.traffic().catch(() => undefined);
      const totals = found && { requests: BigInt(found.requests), errors: BigInt(found.errors) };
      this.#traffic = { readMs: nowMs, totals };
    }
    return this.#traffic.totals;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#rouse();
    for (const stop of this.#stop) stop();
    await this.#running;
    await this.#options.known.close();
  }

  #rouse(): void {
    this.#awake = true;
    this.#wake();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#awake = false;
      try {
        await this.#round(signal);
      } catch (error) {
        this.#failed(error);
      }
      await this.#rest(signal);
    }
  }

  /** Waits until woken. Also wakes at intervals to check a proxy, or to repeat what has failed. */
  async #rest(signal: AbortSignal): Promise<void> {
    if (this.#awake || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const { clock } = this.#options;
    const wakes = this.#hasProxy || this.#againAtMs > 0;
    const cancel = wakes ? clock.schedule(CHECK_EVERY_MS, resolve) : undefined;
    await promise;
    cancel?.();
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { known, services, proxy, clock, bootstrap } = this.#options;
    // A lost file must not stop a running Envoy, because the coordinator sends the configuration again.
    const isLost = known.loaded !== "sound" && (await this.#isServed());
    this.#hasProxy = isLost || known.gateway !== "";
    if (isLost) return this.#keepServing(signal);
    if (clock.monotonicMs() < this.#againAtMs) return;
    if (known.gateway === "") return this.#retire();
    // Without the services, every route of Envoy would lose its endpoints.
    const hasFiles = existsSync(bootstrap.places.bootstrap);
    const found = await proxy.isRunning();
    if (this.#config === undefined && services.loaded !== "sound" && (found || hasFiles))
      return this.#keepServing(signal);
    const runs = found && !(await this.#endLost(proxy));
    if (!runs || this.#config === undefined) await this.#attach(proxy, runs, signal);
    if (signal.aborted) return;
    await this.#update();
    await this.#rotate();
  }

  /** Reports whether Envoy runs or has files of this or an earlier agent. */
  async #isServed(): Promise<boolean> {
    const { proxy, bootstrap } = this.#options;
    return (await ConfigFiles.exist(bootstrap.places)) || (await proxy.isRunning());
  }

  /** Keeps Envoy running on its present files until the coordinator has sent the lost configuration. */
  async #keepServing(signal: AbortSignal): Promise<void> {
    const { proxy, clock, bootstrap } = this.#options;
    if (clock.monotonicMs() < this.#againAtMs || (await proxy.isRunning())) return;
    if (!existsSync(bootstrap.places.bootstrap)) return this.#report({ ready: false, message: NO_FILES });
    await this.#startProxy(proxy, signal);
    if (signal.aborted) return;
    this.#failures = 0;
    if (this.#status !== undefined) this.#report({ ready: true, message: LOST_STATE });
  }

  /** Ends an Envoy whose directory was removed, because it could never be configured again. Returns whether it did. */
  async #endLost(proxy: ProxyProgram): Promise<boolean> {
    const { bootstrap, adminSocket, dir } = this.#options.bootstrap.places;
    if (existsSync(bootstrap) || existsSync(adminSocket)) return false;
    this.#options.onEvent("gateway-proxy-lost", { proxy: proxy.name, reason: `${dir} was removed` });
    await proxy.kill();
    return true;
  }

  async #startProxy(proxy: ProxyProgram, signal: AbortSignal): Promise<void> {
    const { admin, render, bootstrap } = this.#options;
    await mkdir(dirname(render.accessLog), { recursive: true, mode: 0o700 });
    await chmod(bootstrap.places.dir, 0o700);
    await proxy.start();
    await this.#live(proxy, signal);
    this.#proxyVersion = await admin.version();
    this.#options.onEvent("gateway-proxy-started", { proxy: proxy.name, version: this.#proxyVersion });
  }

  /** Starts the proxy, or adopts the running one. */
  async #attach(proxy: ProxyProgram, runs: boolean, signal: AbortSignal): Promise<void> {
    const { known, services, admin, bootstrap, onEvent } = this.#options;
    const { places } = bootstrap;
    this.#config = undefined;
    // Read the files again, because a lost or damaged file may have ended the proxy.
    if (!runs) this.#files = undefined;
    this.#files ??= await ConfigFiles.open(places);
    const config = this.#makeConfig(proxy, this.#files);
    if (!runs) {
      if (this.#proxyVersion !== "") onEvent("gateway-proxy-ended", { proxy: proxy.name });
      const text = JSON.stringify(bootstrapOf(bootstrap));
      await this.#files.put(places.bootstrap, { text, version: shortHash(text) });
      await config.hosts.prepare(known, services.services);
      await this.#startProxy(proxy, signal);
    } else {
      await config.hosts.adopt();
      await this.#live(proxy, signal);
      this.#proxyVersion = await admin.version();
      onEvent("gateway-proxy-found", { proxy: proxy.name, version: this.#proxyVersion });
    }
    this.#config = config;
    this.#viewChanged = true;
  }

  #makeConfig(proxy: ProxyProgram, files: ConfigFiles): { loader: ConfigLoader; hosts: ConfigApplier } {
    const { admin, render, clock } = this.#options;
    const reason = async (): Promise<string> => rejectionIn(await proxy.lastWords());
    const loader = new ConfigLoader({ admin, files, render, clock, reason, makeRoom: ensureWatchLimit });
    return { loader, hosts: new ConfigApplier(loader, render) };
  }

  /** Waits until Envoy responds. Envoy accepts requests only after it has read all its files. */
  async #live(proxy: ProxyProgram, signal: AbortSignal): Promise<void> {
    const { admin, clock } = this.#options;
    const deadlineMs = clock.monotonicMs() + LIVE_WITHIN_MS;
    while (!signal.aborted) {
      if (await admin.live().catch(() => false)) return;
      const ended = !(await proxy.isRunning());
      if (ended || clock.monotonicMs() > deadlineMs) {
        const words = rejectionIn(await proxy.lastWords());
        throw new Error(ended ? `Envoy ended at once: ${words}` : `Envoy did not become ready: ${words}`);
      }
      await pause(clock, LIVE_CHECK_MS, signal);
    }
  }

  async #update(): Promise<void> {
    const { known, services, admin } = this.#options;
    // The host may have ceased to be a gateway since this round began.
    if (this.#config === undefined || known.gateway === "") return;
    const changed = this.#servicesChanged;
    this.#servicesChanged = new Set();
    if (!this.#viewChanged) {
      if (changed.size > 0) await this.#config.loader.updateServices(changed, services.services);
      return;
    }
    this.#viewChanged = false;
    const { version } = known;
    const found = await this.#config.hosts.apply(known, services.services);
    const ready = (await admin.listeners()).has("http");
    this.#report({
      ready,
      message: found.map(problemText).join("; ") || (ready ? "" : NOT_OPEN),
      version,
      problems: shownProblems(found),
    });
    if (ready) this.#failures = 0;
    if (ready && this.#config.hosts.complete) return;
    // A port in use may become free, and Envoy may open a port later than it accepts the file.
    this.#viewChanged = true;
    this.#againLater();
  }

  #failed(error: unknown): void {
    const { onEvent } = this.#options;
    const message = messageOf(error);
    this.#viewChanged = true;
    this.#againLater();
    onEvent("gateway-not-served", { err: error });
    this.#report({ ready: false, message });
  }

  #againLater(): void {
    const waitMs = backOffMs(this.#failures + 1, RETRY);
    this.#failures++;
    this.#againAtMs = this.#options.clock.monotonicMs() + waitMs;
  }

  async #rotate(): Promise<void> {
    const { render, admin } = this.#options;
    if (await rotateLog(render.accessLog, ACCESS_LOG_BYTES_MAX)) await admin.reopenLogs();
  }

  /** Stops the gateway because the host is no longer one. Open requests end first, then the proxy. */
  async #retire(): Promise<void> {
    const { proxy, admin, clock, bootstrap } = this.#options;
    if (!(await this.#isServed())) return this.#retired();
    if (await proxy.isRunning()) {
      await admin.drain().catch(() => undefined);
      const deadlineMs = clock.monotonicMs() + DRAIN_MAX_MS;
      while (clock.monotonicMs() < deadlineMs) {
        if ((await admin.connections().catch(() => 0)) === 0) break;
        await pause(clock, DRAIN_CHECK_MS, this.#closing.signal);
        if (this.#closing.signal.aborted) return;
      }
    }
    // Also removes what an attempt that failed has left of an ended proxy.
    await proxy.kill();
    this.#config = undefined;
    this.#files ??= await ConfigFiles.open(bootstrap.places);
    await this.#files.removeAll();
    this.#files = undefined;
    this.#retired();
  }

  #retired(): void {
    this.#failures = 0;
    this.#againAtMs = 0;
    if (this.#status !== undefined) this.#report({ ready: false, message: "this node is not a gateway" });
  }

  #report(news: Partial<GatewayStatus>): void {
    const version = this.#status?.version ?? 0n;
    const { ready = false, message = "", problems = [] } = news;
    const status: GatewayStatus = {
      ready,
      message: message.slice(0, MESSAGE_LENGTH_MAX),
      proxyVersion: this.#proxyVersion,
      version: news.version ?? version,
      problems,
    };
    if (this.#reported && isDeepStrictEqual(status, this.#status)) return;
    this.#reported = true;
    this.#status = status;
    for (const listener of this.#listeners) listener(status);
  }
}

/** The largest number of reported problems. The message mentions more, as far as they fit. */
const PROBLEMS_MAX = 200;

function shownProblems(problems: readonly Problem[]): GatewayHostProblem[] {
  return problems
    .slice(0, PROBLEMS_MAX)
    .map(({ hostname, message }) => ({ hostname, message: message.slice(0, MESSAGE_LENGTH_MAX) }));
}

function problemText({ hostname, message }: Problem): string {
  return hostname === "" ? message : `${hostname}: ${message}`;
}
