import { familyOf, type IpFamily, parseCidr } from "@forage/common/ip";
import type { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { FAMILY_WORDS, isOfFamily } from "../network/family-words.ts";
import { forgetConnections } from "../network/port-table.ts";
import type { RunCommand } from "../network/run-command.ts";
import type { ServicesView } from "./known-services.ts";
import { rulesOf, type ServicePortRules, type Viewpoint } from "./port-rules.ts";
import { RulesMark } from "./rules-mark.ts";
import {
  balancerDeltaText,
  deltaText,
  fullText,
  markText,
  type RulesById,
  type RulesOptions,
  sameRules,
} from "./rules-text.ts";
import { staleConnections } from "./stale-connections.ts";

export interface ServiceRulesOptions {
  readonly services: ServicesView;
  /** The viewpoint of this host. */
  readonly viewpoint: Viewpoint;
  readonly table: string;
  /** The pods' CIDR of the rules' family. */
  readonly podCidr: string;
  /** The host's address on the pods' bridge, the source of its own connections to virtual IPs. */
  readonly gateway: string;
  readonly bridge: string;
  readonly run: RunCommand;
  readonly onProblem: (event: string, error: unknown) => void;
}

/**
 * The kernel's rules for services, for one address family. Changes during an update go to the kernel together. If the
 * kernel rejects an update, another program has changed the table, and the whole table is replaced. The table is never
 * listed, because that takes longer than replacing it.
 */
export class ServiceRules {
  readonly #options: ServiceRulesOptions;
  /** Rules by id. */
  readonly #desired = new Map<string, ServicePortRules>();
  /** Rule ids by service. */
  readonly #idsOf = new Map<string, readonly string[]>();
  /** The kernel's current rules. Undefined if unknown; the whole table is then replaced. */
  #present: Map<string, ServicePortRules> | undefined;
  #ranges: readonly string[] = [];
  /** The load balancer addresses in the kernel's table. */
  #balancerIps: readonly string[] = [];
  /** The chain in the kernel's table that names its content. Undefined if unknown. */
  #mark: string | undefined;
  readonly #marks = new RulesMark();
  /** Whether the kernel may already have the right table from an earlier agent. False after the first change. */
  #mayBeThere = true;
  #working: Promise<void> | undefined;
  #again = false;
  #closed = false;

  constructor(options: ServiceRulesOptions) {
    this.#options = options;
  }

  /** Creates the table of the known services, replacing an older one atomically. */
  async start(): Promise<void> {
    for (const key of this.#options.services.services.keys()) this.#note(key);
    await this.#apply();
  }

  /** Updates these services. Resolves when the kernel has their rules, or has rejected them. */
  async update(changed: ReadonlySet<string>): Promise<void> {
    for (const key of changed) this.#note(key);
    await this.#apply();
  }

  /** Reports whether the kernel has the table, created by this or an earlier agent. */
  async hasTable(): Promise<boolean> {
    const { run, table } = this.#options;
    const { ip } = FAMILY_WORDS[this.#family];
    const tables = await run("nft", ["list", "tables", ip]);
    return tables.split("\n").includes(`table ${ip} ${table}`);
  }

  /** Restores the table and the routes if another program removed them. Returns whether the table was missing. */
  async repair(): Promise<boolean> {
    if (await this.hasTable()) {
      await this.#setRoutes();
      return false;
    }
    this.#present = undefined;
    await this.#apply();
    return true;
  }

  /** Waits for work in progress. The rules stay, so connections continue without the agent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
  }

  get #family(): IpFamily {
    return familyOf(this.#options.podCidr);
  }

  #note(key: string): void {
    const { services, viewpoint } = this.#options;
    const service: ServiceState | undefined = services.services.get(key);
    const rules = service === undefined ? [] : rulesOf(service, viewpoint, this.#family);
    for (const id of this.#idsOf.get(key) ?? []) this.#desired.delete(id);
    if (rules.length === 0) this.#idsOf.delete(key);
    else
      this.#idsOf.set(
        key,
        rules.map(({ id }) => id),
      );
    for (const rule of rules) this.#desired.set(rule.id, rule);
  }

  #apply(): Promise<void> {
    this.#again = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  async #work(): Promise<void> {
    // Let all changes of this turn join.
    await Promise.resolve();
    while (this.#again && !this.#closed) {
      this.#again = false;
      try {
        await this.#commit();
      } catch (error) {
        this.#options.onProblem("service-rules-not-set", error);
      }
    }
  }

  async #commit(): Promise<void> {
    const ranges = this.#options.services.virtualIpRanges;
    const sameRanges = ranges.join() === this.#ranges.join();
    const before = this.#present;
    this.#present = undefined; // Unknown until the kernel has accepted the change.
    const desired = withoutConflicts(this.#desired);
    const balancersBefore = this.#balancerIps;
    this.#balancerIps = balancerIps(this.#options.services, this.#family);
    if (before === undefined || !sameRanges) {
      this.#ranges = ranges;
      if (!(await this.#isThere(desired))) await this.#loadWhole(desired);
      await this.#setRoutes();
    } else await this.#loadDelta(before, desired, balancersBefore);
    this.#present = desired;
    if (before !== undefined) await this.#forgetPeers(without(before, desired), desired);
  }

  async #loadDelta(before: RulesById, desired: RulesById, balancersBefore: readonly string[]): Promise<void> {
    const delta =
      deltaText(this.#rulesOptions(), without(before, desired), without(desired, before)) +
      balancerDeltaText(this.#options, balancersBefore, this.#balancerIps);
    if (delta === "") return;
    const mark = this.#marks.of(this.#rulesOptions(), desired);
    try {
      await this.#load(delta + markText(this.#options, this.#mark, mark));
      this.#mark = mark;
    } catch (error) {
      this.#options.onProblem("service-table-differs", error);
      await this.#loadWhole(desired);
    }
  }

  /**
   * Reports whether the kernel has these rules. Only the kernel knows which client stays with which pod, and leaving
   * the table unchanged keeps that across restarts of the agent.
   */
  async #isThere(desired: RulesById): Promise<boolean> {
    if (!this.#mayBeThere) return false;
    this.#mayBeThere = false;
    const mark = this.#marks.of(this.#rulesOptions(), desired);
    try {
      // Listing would read the whole table.
      await this.#load(markText(this.#options, mark, undefined) + markText(this.#options, undefined, mark));
    } catch {
      return false;
    }
    this.#mark = mark;
    return true;
  }

  async #loadWhole(desired: RulesById): Promise<void> {
    const options = this.#rulesOptions();
    const mark = this.#marks.of(options, desired);
    await this.#load(fullText(options, desired) + markText(options, undefined, mark));
    this.#mark = mark;
  }

  #rulesOptions(): RulesOptions {
    const { table, podCidr } = this.#options;
    const virtualIpRanges = this.#ranges.filter((range) => parseCidr(range)?.family === this.#family);
    return { table, podCidr, virtualIpRanges, balancerIps: this.#balancerIps };
  }

  async #load(text: string): Promise<void> {
    await this.#options.run("nft", ["-f", "-"], { input: text });
  }

  /**
   * Sets routes to the virtual IPs. Without them the host's own connections fail before any rule applies. The routes
   * don't lead through the bridge, because the kernel would then send pods a redirect each time and limits their rate.
   * With IPv6 they have to lead through the bridge, and rules prevent the redirects.
   */
  async #setRoutes(): Promise<void> {
    const { run, gateway, bridge } = this.#options;
    const device = this.#family === 4 ? "lo" : bridge;
    for (const range of this.#rulesOptions().virtualIpRanges) {
      await run("ip", [`-${this.#family}`, "route", "replace", range, "dev", device, "src", gateway]);
    }
  }

  async #forgetPeers(from: RulesById, desired: RulesById): Promise<void> {
    for (const match of staleConnections(from, desired)) {
      await forgetConnections(this.#options.run, match, this.#family).catch((error) =>
        this.#options.onProblem("conntrack-failed", error),
      );
    }
  }
}

/** Returns the load balancer addresses of all services, each once. */
function balancerIps({ services }: ServicesView, family: IpFamily): string[] {
  const ips = [...services.values()].flatMap(({ loadBalancerIps }) => loadBalancerIps);
  return [...new Set(ips.filter((ip) => isOfFamily(ip, family)))].sort();
}

/**
 * Returns the rules without duplicate addresses. While an address moves between services, both may have it for a
 * moment, but the kernel accepts it only once.
 */
function withoutConflicts(rules: RulesById): Map<string, ServicePortRules> {
  const taken = new Set<string>();
  const isFree = (key: string): boolean => !taken.has(key) && taken.add(key) !== undefined;
  return new Map(
    [...rules].map(([id, rule]) => {
      const addresses = rule.addresses.filter(isFree);
      const nodePort = rule.nodePort !== undefined && isFree(rule.nodePort) ? rule.nodePort : undefined;
      const same = addresses.length === rule.addresses.length && nodePort === rule.nodePort;
      return [id, same ? rule : { ...rule, addresses, nodePort }];
    }),
  );
}

/** Returns the rules that `others` lacks or that differ. */
function without(rules: RulesById, others: RulesById): Map<string, ServicePortRules> {
  return new Map(
    [...rules].filter(([id, rule]) => {
      const other = others.get(id);
      return other !== rule && (other === undefined || !sameRules(other, rule));
    }),
  );
}
