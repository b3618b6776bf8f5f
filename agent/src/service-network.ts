import { join } from "node:path";
import type { ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "./clock.ts";
import { askOver } from "./dns/ask-server.ts";
import { DnsServer } from "./dns/dns-server.ts";
import { Forwarder } from "./dns/forwarder.ts";
import { Upstreams } from "./dns/upstreams.ts";
import { instanceNames } from "./network/instance-names.ts";
import { parsePodCidr } from "./network/ipv4-cidr.ts";
import type { RunCommand } from "./network/run-command.ts";
import { KnownServices } from "./services/known-services.ts";
import { ServiceRules } from "./services/service-rules.ts";

export interface ServiceNetworkOptions {
  readonly dataDir: string;
  readonly instance: string;
  readonly podCidr: string;
  readonly nodeName: string;
  readonly clusterDomain: string;
  /** Whether to answer pods' DNS questions. */
  readonly dns: boolean;
  /** [0, 1). */
  readonly random: () => number;
  readonly clock: Clock;
  readonly run: RunCommand;
  readonly onProblem: (event: string, error: unknown) => void;
}

/** What makes services reachable on this host, fed by the link, from disk while there is none. */
export interface ServiceNetwork {
  /** Once the pods' bridge is there. Also resolves if the rules could not be made; that is tried again. */
  start(): Promise<void>;
  /** Empty: everything works. */
  problems(): readonly string[];
  /** A new connection tells everything anew. */
  restart(): void;
  take(update: ServiceUpdate): void;
  close(): Promise<void>;
}

/** Other programs reload the whole nftables ruleset at any time, and nothing tells us. */
const REPAIR_INTERVAL_MS = 30_000;
/** The bridge's address is there only once the network has been set up, after a boot. */
const LISTEN_AGAIN_MS = 250;
const LISTEN_AGAIN_CAP_MS = 10_000;
const DNS_PORT = 53;

/** That of a Linux host. */
export class HostServiceNetwork implements ServiceNetwork {
  readonly #options: ServiceNetworkOptions;
  readonly #services: KnownServices;
  readonly #rules: ServiceRules;
  #cancelRepair: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #closed = false;
  #dns: DnsServer | undefined;
  #dnsProblem: string | undefined;
  #cancelListen: (() => void) | undefined;
  #listening: Promise<void> = Promise.resolve();

  private constructor(options: ServiceNetworkOptions, services: KnownServices) {
    this.#options = options;
    this.#services = services;
    const { podCidr, nodeName: node, run, onProblem } = options;
    const { gateway, text } = parsePodCidr(podCidr);
    const { servicesTable: table } = instanceNames(options.instance);
    this.#rules = new ServiceRules({ services, node, table, podCidr: text, gateway, run, onProblem });
  }

  static async open(options: ServiceNetworkOptions): Promise<HostServiceNetwork> {
    const { dataDir, clock, onProblem } = options;
    const services = await KnownServices.open({
      dir: join(dataDir, "services"),
      clock,
      onError: (error) => onProblem("services-not-kept", error),
    });
    const network = new HostServiceNetwork(options, services);
    // At once: after a restart pods have been asking already.
    if (options.dns) network.#listening = network.#listen(LISTEN_AGAIN_MS);
    await network.#listening;
    return network;
  }

  /** What is known of services. */
  get known(): Pick<KnownServices, "services" | "subscribe"> {
    return this.#services;
  }

  async start(): Promise<void> {
    if (this.#closed) return;
    this.#unsubscribe = this.#services.subscribe((changed) => void this.#rules.update(changed));
    await this.#rules.start();
    this.#repairLater();
  }

  restart(): void {
    this.#services.restart();
  }

  take(update: ServiceUpdate): void {
    this.#services.take(update);
  }

  problems(): readonly string[] {
    return this.#dnsProblem === undefined ? [] : [this.#dnsProblem];
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelListen?.();
    await this.#listening;
    await this.#dns?.close();
    this.#cancelRepair?.();
    this.#unsubscribe?.();
    await this.#rules.close();
    await this.#services.close();
  }

  async #listen(againMs: number): Promise<void> {
    const { clock, nodeName: node, clusterDomain: domain, random, onProblem } = this.#options;
    const { gateway: address } = parsePodCidr(this.#options.podCidr);
    const monotonicMs = (): number => clock.monotonicMs();
    const upstreams = new Upstreams({ path: "/etc/resolv.conf", own: address, monotonicMs });
    const forwarder = new Forwarder({ upstreams: () => upstreams.list(), ask: askOver(), monotonicMs });
    const world = { view: this.#services, domain, node };
    try {
      this.#dns = await DnsServer.open({ address, port: DNS_PORT, world, forwarder, random });
      this.#dnsProblem = undefined;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (againMs >= LISTEN_AGAIN_CAP_MS && this.#dnsProblem === undefined)
        onProblem("dns-not-served", error);
      if (againMs >= LISTEN_AGAIN_CAP_MS) this.#dnsProblem = `DNS for pods: ${why}`;
      if (this.#closed) return;
      this.#cancelListen = clock.after(againMs, () => {
        this.#listening = this.#listen(Math.min(LISTEN_AGAIN_CAP_MS, againMs * 2));
      });
    }
  }

  #repairLater(): void {
    const { clock, onProblem } = this.#options;
    if (this.#closed) return;
    this.#cancelRepair = clock.after(REPAIR_INTERVAL_MS, async () => {
      try {
        if (await this.#rules.repair()) onProblem("service-table-put-back", undefined);
      } catch (error) {
        onProblem("service-rules-not-repaired", error);
      }
      this.#repairLater();
    });
  }
}
