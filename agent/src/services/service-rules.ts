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
  /** The view of this host. */
  readonly viewpoint: Viewpoint;
  readonly table: string;
  /** The pods' CIDR of the rules' family. */
  readonly podCidr: string;
  /** The host's address on the pods' bridge, which its own connections to virtual IPs come from. */
  readonly gateway: string;
  readonly bridge: string;
  readonly run: RunCommand;
  readonly onProblem: (event: string, error: unknown) => void;
}

/**
 * The kernel's rules for services, for one family of addresses. Changes that arrive during an update go to the kernel together.
 * If the kernel rejects an update, another program has changed the table, and the whole table is replaced. The table is never
 * listed, because that takes longer than replacing it.
 */
export class ServiceRules {
  readonly #parts: ServiceRulesOptions;
  /** Keyed by id. */
  readonly #wanted = new Map<string, ServicePortRules>();
  /** Ids of each service's rules. */
  readonly #idsOf = new Map<string, readonly string[]>();
  /** The kernel's present rules. Undefined if they are unknown; then the whole table is replaced. */
  #present: Map<string, ServicePortRules> | undefined;
  #ranges: readonly string[] = [];
  /** Addresses of load balancers that the kernel has. */
  #balancerIps: readonly string[] = [];
  /** Chain of the kernel's table that names its content; undefined: not known. */
  #mark: string | undefined;
  readonly #marks = new RulesMark();
  /** True until the first change: an earlier agent may have left exactly the right table. */
  #mayBeThere = true;
  #working: Promise<void> | undefined;
  #again = false;
  #closed = false;

  constructor(parts: ServiceRulesOptions) {
    this.#parts = parts;
  }

  /** Makes the table of what is known, in place of an older one, with no moment without. */
  async start(): Promise<void> {
    for (const key of this.#parts.services.services.keys()) this.#note(key);
    await this.#apply();
  }

  /** Updates these services. Resolves when the kernel has their rules, or has rejected them. */
  async update(changed: ReadonlySet<string>): Promise<void> {
    for (const key of changed) this.#note(key);
    await this.#apply();
  }

  /** Reports whether the kernel has the table, made by this agent or by an earlier one. */
  async hasTable(): Promise<boolean> {
    const { run, table } = this.#parts;
    const { ip } = FAMILY_WORDS[this.#family];
    const tables = await run("nft", ["list", "tables", ip]);
    return tables.split("\n").includes(`table ${ip} ${table}`);
  }

  /** Puts the table and the routes back if someone removed them; gives whether the table was missing. */
  async repair(): Promise<boolean> {
    if (await this.hasTable()) {
      await this.#setRoutes();
      return false;
    }
    this.#present = undefined;
    await this.#apply();
    return true;
  }

  /** Lets the work in progress end. The rules stay: connections go on without the agent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
  }

  get #family(): IpFamily {
    return familyOf(this.#parts.podCidr);
  }

  #note(key: string): void {
    const { services, viewpoint } = this.#parts;
    const service: ServiceState | undefined = services.services.get(key);
    const rules = service === undefined ? [] : rulesOf(service, viewpoint, this.#family);
    for (const id of this.#idsOf.get(key) ?? []) this.#wanted.delete(id);
    if (rules.length === 0) this.#idsOf.delete(key);
    else
      this.#idsOf.set(
        key,
        rules.map(({ id }) => id),
      );
    for (const rule of rules) this.#wanted.set(rule.id, rule);
  }

  #apply(): Promise<void> {
    this.#again = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  async #work(): Promise<void> {
    // Lets all changes of this turn join.
    await Promise.resolve();
    while (this.#again && !this.#closed) {
      this.#again = false;
      try {
        await this.#commit();
      } catch (error) {
        this.#parts.onProblem("service-rules-not-set", error);
      }
    }
  }

  async #commit(): Promise<void> {
    const ranges = this.#parts.services.virtualIpRanges;
    const sameRanges = ranges.join() === this.#ranges.join();
    const before = this.#present;
    this.#present = undefined; // Until it is known that the kernel took it.
    const wanted = withoutConflicts(this.#wanted);
    const balancersBefore = this.#balancerIps;
    this.#balancerIps = balancerIps(this.#parts.services, this.#family);
    if (before === undefined || !sameRanges) {
      this.#ranges = ranges;
      if (!(await this.#isThere(wanted))) await this.#loadWhole(wanted);
      await this.#setRoutes();
    } else await this.#loadDelta(before, wanted, balancersBefore);
    this.#present = wanted;
    if (before !== undefined) await this.#forgetPeers(without(before, wanted), wanted);
  }

  async #loadDelta(before: RulesById, wanted: RulesById, balancersBefore: readonly string[]): Promise<void> {
    const delta =
      deltaText(this.#options(), without(before, wanted), without(wanted, before)) +
      balancerDeltaText(this.#parts, balancersBefore, this.#balancerIps);
    if (delta === "") return;
    const mark = this.#marks.of(this.#options(), wanted);
    try {
      await this.#load(delta + markText(this.#parts, this.#mark, mark));
      this.#mark = mark;
    } catch (error) {
      this.#parts.onProblem("service-table-differs", error);
      await this.#loadWhole(wanted);
    }
  }

  /**
   * Reports whether the kernel has these rules. Only the kernel knows which client stays with which pod, and a table that is left
   * alone keeps this across restarts of the agent.
   */
  async #isThere(wanted: RulesById): Promise<boolean> {
    if (!this.#mayBeThere) return false;
    this.#mayBeThere = false;
    const mark = this.#marks.of(this.#options(), wanted);
    try {
      // Listing would read the whole table.
      await this.#load(markText(this.#parts, mark, undefined) + markText(this.#parts, undefined, mark));
    } catch {
      return false;
    }
    this.#mark = mark;
    return true;
  }

  async #loadWhole(wanted: RulesById): Promise<void> {
    const options = this.#options();
    const mark = this.#marks.of(options, wanted);
    await this.#load(fullText(options, wanted) + markText(options, undefined, mark));
    this.#mark = mark;
  }

  #options(): RulesOptions {
    const { table, podCidr } = this.#parts;
    const virtualIpRanges = this.#ranges.filter((range) => parseCidr(range)?.family === this.#family);
    return { table, podCidr, virtualIpRanges, balancerIps: this.#balancerIps };
  }

  async #load(text: string): Promise<void> {
    await this.#parts.run("nft", ["-f", "-"], { input: text });
  }

  /**
   * Sets routes to the virtual IPs. Without them the host's own connections fail before any rule sees them. The routes don't lead
   * through the bridge, because the kernel would then send pods a redirect each time, and it limits how many it sends. With IPv6
   * they have to lead through the bridge, and rules prevent the redirects.
   */
  async #setRoutes(): Promise<void> {
    const { run, gateway, bridge } = this.#parts;
    const device = this.#family === 4 ? "lo" : bridge;
    for (const range of this.#options().virtualIpRanges) {
      await run("ip", [`-${this.#family}`, "route", "replace", range, "dev", device, "src", gateway]);
    }
  }

  async #forgetPeers(from: RulesById, wanted: RulesById): Promise<void> {
    for (const match of staleConnections(from, wanted)) {
      await forgetConnections(this.#parts.run, match, this.#family).catch((error) =>
        this.#parts.onProblem("conntrack-failed", error),
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
 * Returns the rules without duplicate addresses. While an address moves from one service to another, both may have it for a
 * moment; the kernel accepts it once.
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

/** Returns the rules that the others lack or that differ. */
function without(rules: RulesById, others: RulesById): Map<string, ServicePortRules> {
  return new Map(
    [...rules].filter(([id, rule]) => {
      const other = others.get(id);
      return other !== rule && (other === undefined || !sameRules(other, rule));
    }),
  );
}
