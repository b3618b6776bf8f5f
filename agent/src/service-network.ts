import type { networkInterfaces } from "node:os";
import { join } from "node:path";
import { familyOf, type IpFamily } from "@forage/common/ip";
import type { ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { type Clock, pause } from "./clock.ts";
import type { NoteDamage } from "./damage-reports.ts";
import { allowedClients } from "./dns/allowed-clients.ts";
import { DnsListener } from "./dns/dns-listener.ts";
import { Forwarder } from "./dns/forwarder.ts";
import { queryOver } from "./dns/query-server.ts";
import { Upstreams } from "./dns/upstreams.ts";
import type { StateFiles } from "./feed/state-file.ts";
import { connectedNetworks, linksOf } from "./load-balancer/connected-networks.ts";
import { HeldAddressesFile } from "./load-balancer/held-addresses-file.ts";
import { LoadBalancer } from "./load-balancer/load-balancer.ts";
import { instanceNames } from "./network/instance-names.ts";
import { parsePodCidr, parsePodCidr6 } from "./network/pod-cidr.ts";
import type { RunCommand } from "./network/run-command.ts";
import { remembered } from "./remembered.ts";
import { KnownServices } from "./services/known-services.ts";
import type { Viewpoint } from "./services/port-rules.ts";
import { ServiceRules } from "./services/service-rules.ts";

export interface ServiceNetworkOptions {
  readonly dataDir: string;
  readonly instance: string;
  readonly podCidr: string;
  /** The IPv6 range of pods. Undefined: pods have no IPv6. */
  readonly podCidr6: string | undefined;
  readonly nodeName: string;
  /** The address families by which this host and others reach each other. */
  readonly reach: readonly IpFamily[];
  readonly clusterDomain: string;
  /** Whether to answer DNS queries of pods. */
  readonly dns: boolean;
  /** Whether Destination is served on the pods' bridge, under a name. */
  readonly servesDestination?: boolean;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  readonly clock: Clock;
  readonly run: RunCommand;
  /** The interface on which load balancer addresses are announced. Undefined: the interface of their network. */
  readonly balancerInterface: string | undefined;
  readonly hostInterfaces: typeof networkInterfaces;
  /** Default: the host's disk. */
  readonly files?: StateFiles | undefined;
  readonly onEvent: (event: string, fields: object) => void;
  readonly onProblem: (event: string, error: unknown) => void;
  readonly noteDamage: NoteDamage;
}

/**
 * Makes services reachable on this host. Its state comes from the coordinator, and from disk while the connection is
 * down.
 */
export interface ServiceNetwork {
  /** Resolves once the pods' bridge exists, even if creating the rules has failed; that is retried. */
  start(): Promise<void>;
  /** Returns the current problems. Empty if everything works. */
  problems(): readonly string[];
  /** Returns the subnets in which the host can announce load balancer addresses. */
  networks(): readonly string[];
  /**
   * Called for a new connection, on which everything is sent again. Returns a function to call when the connection
   * ends.
   */
  restart(): () => void;
  apply(update: ServiceUpdate): void;
  close(): Promise<void>;
}

/** Other programs may reload the whole nftables ruleset at any time, without a notification. */
const REPAIR_INTERVAL_MS = 30_000;
const DNS_PORT = 53;
const DAMAGE_REMEDY = "services keep the rules they have until the coordinator sends them again";

const NETWORKS_INTERVAL_MS = 30_000;
/**
 * The age up to which the list of interfaces is reused. Every heartbeat compares the node's report, and each of 40 pods
 * has an interface. Listing them every 2.5 s took as much processor time as everything else in an idle agent.
 */
const NETWORKS_AGE_MS = 10_000;

/**
 * Calls `onChange` when the host's subnets change, for example with interfaces or cables. Runs until the signal aborts.
 */
export async function watchNetworks(
  services: Pick<ServiceNetwork, "networks">,
  clock: Clock,
  onChange: () => void,
  signal: AbortSignal,
): Promise<void> {
  for (let before = services.networks().join(); !signal.aborted; ) {
    await pause(clock, NETWORKS_INTERVAL_MS, signal);
    const now = services.networks().join();
    if (now !== before) onChange();
    before = now;
  }
}

/** The service network of a Linux host. */
export class HostServiceNetwork implements ServiceNetwork {
  readonly #options: ServiceNetworkOptions;
  readonly #services: KnownServices;
  /** The pod network and the host's address in it, for each address family of pods. */
  readonly #bridges: readonly { readonly text: string; readonly gateway: string }[];
  readonly #rules: readonly ServiceRules[];
  #balancer: LoadBalancer | undefined;
  /** The number of connections so far, because an older one may end after the next has begun. */
  #connection = 0;
  #cancelRepair: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #closed = false;
  /** Whether the rules have been created. */
  #started = false;
  #dns: readonly DnsListener[] = [];
  /** Returns the recently read subnets of the host's interfaces. */
  readonly networks: () => readonly string[];

  private constructor(options: ServiceNetworkOptions, services: KnownServices) {
    this.#options = options;
    this.#services = services;
    this.networks = remembered(() => this.#readNetworks(), NETWORKS_AGE_MS, options.clock);
    const { podCidr, podCidr6, run, onProblem } = options;
    this.#bridges = [parsePodCidr(podCidr), ...(podCidr6 === undefined ? [] : [parsePodCidr6(podCidr6)])];
    const { servicesTable: table, bridge } = instanceNames(options.instance);
    const common = { services, viewpoint: viewpointOf(options), table, bridge, run, onProblem };
    this.#rules = this.#bridges.map(
      ({ text, gateway }) => new ServiceRules({ ...common, podCidr: text, gateway }),
    );
  }

  static async open(options: ServiceNetworkOptions): Promise<HostServiceNetwork> {
    const { dataDir, clock, onProblem, noteDamage, files } = options;
    const services = await KnownServices.open({
      dir: join(dataDir, "services"),
      ...{ clock, files },
      onError: (error) => onProblem("services-not-kept", error),
      onDamage: (path, reason) => noteDamage(path, reason, DAMAGE_REMEDY),
    });
    const network = new HostServiceNetwork(options, services);
    network.#balancer = await network.#openBalancer();
    if (options.dns) await network.#listen();
    return network;
  }

  /** The known services. */
  get known(): Pick<KnownServices, "services" | "subscribe" | "loaded"> {
    return this.#services;
  }

  async start(): Promise<void> {
    if (this.#closed) return;
    this.#unsubscribe = this.#services.subscribe((changed) => {
      if (!this.#started) {
        void this.#startRules();
        return;
      }
      // Addresses are updated last, so that the rules exist where an address is announced.
      const updated = Promise.all(this.#rules.map((rules) => rules.update(changed)));
      void updated.then(() => this.#balancer?.update());
    });
    // Rules without known services would remove those that the last agent left in the kernel.
    if (await this.#mayMakeRules()) await this.#startRules();
  }

  /**
   * Reports whether rules may be created. False if the stored services are lost while the kernel has rules of an
   * earlier agent.
   */
  async #mayMakeRules(): Promise<boolean> {
    const { loaded, path } = this.#services;
    if (loaded === "damaged") return false;
    if (loaded === "sound") return true;
    const found = await Promise.all(this.#rules.map((rules) => rules.hasTable().catch(() => false)));
    // The coordinator may have sent all services meanwhile.
    if (this.#started || this.#closed || !found.includes(true)) return !this.#started && !this.#closed;
    if (this.#services.loaded === "sound") return true;
    this.#options.noteDamage(path, "it is missing while the kernel has rules for services", DAMAGE_REMEDY);
    return false;
  }

  async #startRules(): Promise<void> {
    this.#started = true;
    await Promise.all(this.#rules.map((rules) => rules.start()));
    await this.#balancer?.start();
    this.#repairLater();
  }

  #readNetworks(): readonly string[] {
    const { balancerInterface, hostInterfaces } = this.#options;
    const links = linksOf(hostInterfaces());
    const named = links.some(({ ifname }) => ifname === balancerInterface) ? ["0.0.0.0/0", "::/0"] : [];
    const all = balancerInterface === undefined ? connectedNetworks(links).map(({ cidr }) => cidr) : named;
    return [...new Set(all.filter((cidr) => this.#families().includes(familyOf(cidr))))].sort();
  }

  restart(): () => void {
    const connection = ++this.#connection;
    this.#services.restart();
    this.#balancer?.setCurrent(false);
    return () => {
      if (connection === this.#connection) this.#balancer?.setCurrent(false);
    };
  }

  apply(update: ServiceUpdate): void {
    this.#services.apply(update);
    if (!update.more) this.#balancer?.setCurrent(true);
  }

  problems(): readonly string[] {
    return [...this.#dns.flatMap(({ problem }) => problem ?? []), ...(this.#balancer?.problems() ?? [])];
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#dns.map((it) => it.close()));
    this.#cancelRepair?.();
    this.#unsubscribe?.();
    await Promise.all(this.#rules.map((rules) => rules.close()));
    await this.#balancer?.close();
    await this.#services.close();
  }

  #families(): IpFamily[] {
    return this.#bridges.map(({ text }) => familyOf(text));
  }

  async #openBalancer(): Promise<LoadBalancer> {
    const {
      dataDir,
      nodeName: node,
      balancerInterface,
      clock,
      random,
      run,
      onEvent,
      onProblem,
      noteDamage,
      files,
    } = this.#options;
    return new LoadBalancer({
      ...{ services: this.#services, node, clock, random, run, onEvent, onProblem },
      servicesLost: () => this.#services.loaded !== "sound",
      held: await HeldAddressesFile.open(join(dataDir, "load-balancer"), noteDamage, files),
      interface: balancerInterface,
      families: this.#families(),
    });
  }

  /** Starts listening at once, because pods may already be sending queries after a restart. */
  async #listen(): Promise<void> {
    const { clock, clusterDomain: domain, random, onProblem } = this.#options;
    const own = this.#bridges.map(({ gateway }) => gateway);
    const monotonicMs = (): number => clock.monotonicMs();
    const upstreams = new Upstreams({ path: "/etc/resolv.conf", own, monotonicMs });
    const forwarder = new Forwarder({ upstreams: () => upstreams.list(), ask: queryOver(), monotonicMs });
    const viewpoint = viewpointOf(this.#options);
    const destination = this.#options.servesDestination === true ? own : [];
    const dependencies = { view: this.#services, domain, viewpoint, families: this.#families(), destination };
    const { podCidr, podCidr6, hostInterfaces } = this.#options;
    const podCidrs = podCidr6 === undefined ? [podCidr] : [podCidr, podCidr6];
    const hostAddresses = () =>
      Object.values(hostInterfaces()).flatMap((it = []) => it.map(({ address }) => address));
    const mayAsk = allowedClients(podCidrs, hostAddresses);
    const options = { port: DNS_PORT, dependencies, forwarder, mayAsk, random, clock, onProblem };
    this.#dns = await Promise.all(own.map((address) => DnsListener.open({ ...options, address })));
  }

  #repairLater(): void {
    const { clock, onProblem } = this.#options;
    if (this.#closed) return;
    this.#cancelRepair = clock.schedule(REPAIR_INTERVAL_MS, async () => {
      try {
        for (const rules of this.#rules)
          if (await rules.repair()) onProblem("service-table-put-back", undefined);
      } catch (error) {
        onProblem("service-rules-not-repaired", error);
      }
      this.#repairLater();
    });
  }
}

function viewpointOf({ nodeName, reach }: ServiceNetworkOptions): Viewpoint {
  return { node: nodeName, reach };
}
