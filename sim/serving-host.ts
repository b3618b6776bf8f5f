import type { Clock } from "@forage/common/clock";
import type { GatewayCertificate, GatewayHost, ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { CommandFailed, type RunCommand } from "../agent/src/network/run-command.ts";
import { FakeServiceTables } from "../agent/test/fake-service-tables.ts";

const LAN_PREFIX = 24;
const LONGEST_COMMAND_MS = 20;
/** The time for which a host waits for another one to answer for an address. */
const PROBE_MS = 2_000;

/** The configuration that a gateway's proxy serves. */
export interface Served {
  readonly hosts: ReadonlyMap<string, GatewayHost>;
  readonly certificates: ReadonlyMap<string, GatewayCertificate>;
  /** The services by `namespace/name`. */
  readonly services: ReadonlyMap<string, ServiceState>;
}

/** The part of an agent's life that its commands depend on. */
export interface AgentAccess {
  /** Its timers no longer fire once the agent is dead. */
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

/** The hosts of one network. Each can find out whether another one answers for an address. */
export class SimLan {
  readonly hosts: ServingHost[] = [];

  holders(ip: string): readonly ServingHost[] {
    return this.hosts.filter((host) => host.holds(ip));
  }
}

/**
 * The state of a host that serves routes and load balancers: the kernel's addresses, and the proxy. It survives agents.
 */
export class ServingHost {
  readonly name: string;
  /** The network through which the host is reached, such as `192.0.2.1`. */
  readonly address: string;
  readonly #lan: SimLan;
  readonly #nowMs: () => number;
  readonly #hardware: string;
  readonly #tables = new FakeServiceTables();
  /** The end of each address's lease. */
  readonly #leases = new Map<string, number>();
  #proxy: Served | undefined;
  isUp = true;
  /** Called when the proxy has ended by itself. */
  onProxyEnd: () => void = () => {};

  constructor(lan: SimLan, name: string, address: string, nowMs: () => number) {
    this.name = name;
    this.address = address;
    this.#lan = lan;
    this.#nowMs = nowMs;
    const number = lan.hosts.push(this);
    this.#hardware = `02:00:00:00:00:${number.toString(16).padStart(2, "0")}`;
  }

  /** Undefined if it doesn't run. */
  get proxy(): Served | undefined {
    return this.isUp ? this.#proxy : undefined;
  }

  serve(served: Served | undefined): void {
    this.#proxy = served;
  }

  endProxy(): void {
    if (this.#proxy === undefined) return;
    this.#proxy = undefined;
    this.onProxyEnd();
  }

  holds(ip: string): boolean {
    return this.isUp && (this.#leases.get(ip) ?? 0) > this.#nowMs();
  }

  /** Returns the addresses of load balancers that it answers for. */
  held(): readonly string[] {
    return [...this.#leases.keys()].filter((ip) => this.holds(ip));
  }

  reboot(): void {
    this.#proxy = undefined;
    this.#leases.clear();
    this.#tables.reboot();
  }

  /** Returns the commands of the host, as an agent runs them: they take time, and end with it. */
  commandsFor({ clock, random }: AgentAccess): RunCommand {
    const wait = (ms: number) => new Promise<void>((resolve) => clock.schedule(ms, resolve));
    return async (file, args, options) => {
      await wait(Math.ceil(random() * LONGEST_COMMAND_MS));
      if (file === "nft") return this.#tables.run(file, args, options);
      if (file === "busybox" && args.includes("-D")) {
        await wait(PROBE_MS);
        return this.#probe(args.at(-1) ?? "");
      }
      return file === "ip" ? this.#ip(args) : "";
    };
  }

  #probe(ip: string): string {
    const other = this.#lan.holders(ip).find((host) => host !== this);
    if (other === undefined) return "";
    throw new CommandFailed("busybox", `Unicast reply from ${ip} [${other.#hardware}] 0.1ms`, "");
  }

  #ip(args: readonly string[]): string {
    const [subject, verb, cidr = ""] = args;
    if (args.includes("-json")) return JSON.stringify([this.#link()]);
    const [ip = ""] = cidr.split("/");
    if (subject !== "address") return "";
    if (verb === "replace") this.#leases.set(ip, this.#nowMs() + leaseMs(args));
    if (verb === "del" && !this.#leases.delete(ip))
      throw new CommandFailed("ip", "", "RTNETLINK answers: Cannot assign requested address");
    return "";
  }

  #link() {
    const own = { family: "inet", local: this.address, prefixlen: LAN_PREFIX };
    const others = this.held().map((local) => ({ family: "inet", local, prefixlen: 32 }));
    return { ifname: "eth0", address: this.#hardware, mtu: 1_500, addr_info: [own, ...others] };
  }
}

function leaseMs(args: readonly string[]): number {
  const text = args[args.indexOf("valid_lft") + 1] ?? "forever";
  return text === "forever" ? Number.POSITIVE_INFINITY : 1_000 * Number(text);
}
