import { join } from "node:path";
import type { ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "./clock.ts";
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
  readonly clock: Clock;
  readonly run: RunCommand;
  readonly onProblem: (event: string, error: unknown) => void;
}

/** What makes services reachable on this host, fed by the link, from disk while there is none. */
export interface ServiceNetwork {
  /** Once the pods' bridge is there. Also resolves if the rules could not be made; that is tried again. */
  start(): Promise<void>;
  /** A new connection tells everything anew. */
  restart(): void;
  take(update: ServiceUpdate): void;
  close(): Promise<void>;
}

/** Other programs reload the whole nftables ruleset at any time, and nothing tells us. */
const REPAIR_INTERVAL_MS = 30_000;

/** That of a Linux host. */
export class HostServiceNetwork implements ServiceNetwork {
  readonly #options: ServiceNetworkOptions;
  readonly #services: KnownServices;
  readonly #rules: ServiceRules;
  #cancelRepair: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #closed = false;

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
    return new HostServiceNetwork(options, services);
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

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRepair?.();
    this.#unsubscribe?.();
    await this.#rules.close();
    await this.#services.close();
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
