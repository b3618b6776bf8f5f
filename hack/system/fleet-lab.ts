import assert from "node:assert/strict";
import { waitFor } from "../lib/wait-for.ts";
import type { Fleet, FleetNode } from "./fleet.ts";
import { ask, inPod, type RequestSource, resolve } from "./places.ts";

/** The fields of `forage get pods -o json` that the tests read. */
export interface FleetPod {
  readonly name: string;
  readonly node?: string;
  readonly stopping?: boolean;
  readonly nodeLost?: boolean;
  readonly workloadName: string;
  readonly status?: {
    readonly ready?: boolean;
    readonly podIp?: string;
    readonly podIps?: readonly string[];
    readonly containers?: readonly { readonly containerId?: string; readonly restartCount?: number }[];
  };
}

export interface ServiceAddresses {
  readonly ip: string;
  /** Empty if services have no IPv6. */
  readonly ip6: string;
  readonly nodePort: number;
}

interface ServiceJson {
  readonly name: string;
  readonly virtualIps?: readonly string[];
  readonly nodePorts?: readonly { readonly nodePort: number }[];
}

export interface ServerRecord {
  readonly name: string;
  readonly port: number;
}

const LIMIT_MS = 120_000;
const NAMESPACE = ["-n", "e2e"];

/** Inspects the pods in a fleet's namespace `e2e`, from inside them. */
export class FleetLab {
  readonly #fleet: Fleet;
  /** The pods' name server, the same on every node. */
  readonly dnsServer: string;

  constructor(fleet: Fleet, dnsServer: string) {
    this.#fleet = fleet;
    this.dnsServer = dnsServer;
  }

  async apply(resources: readonly object[]): Promise<void> {
    const manifest = JSON.stringify({ namespace: "e2e", resources });
    const { exitCode, stderr } = await this.#fleet.forageInProcess(["apply", "-f", "-"], manifest);
    assert.equal(exitCode, 0, stderr);
  }

  async exec(pod: string, command: readonly string[]): Promise<void> {
    const { exitCode, stderr } = await this.#fleet.forageInProcess([
      "exec",
      pod,
      ...NAMESPACE,
      "--",
      ...command,
    ]);
    assert.equal(exitCode, 0, stderr);
  }

  /** Returns the serving pods, or all. */
  async pods(workload: string, which: "serving" | "all" = "serving"): Promise<FleetPod[]> {
    const pods = await this.#fleet.ask<FleetPod[]>(["get", "pods", ...NAMESPACE]);
    return pods.filter((pod) => pod.workloadName === workload && (which === "all" || isServing(pod)));
  }

  /** Waits until exactly `count` pods of the workload serve. */
  async serving(workload: string, count: number): Promise<FleetPod[]> {
    let seen: FleetPod[] = [];
    await waitFor(
      async () => {
        seen = await this.pods(workload);
        return seen.length === count;
      },
      {
        what: `${count} pods of ${workload} serve`,
        limitMs: LIMIT_MS,
        everyMs: 200,
        explain: () => JSON.stringify(seen),
      },
    );
    return seen;
  }

  nodeOf(pod: FleetPod | undefined): FleetNode {
    const found = this.#fleet.nodes.find(({ name }) => name === pod?.node);
    assert.ok(found, `${pod?.name} is on no node`);
    return found;
  }

  async place(of: string | FleetPod): Promise<RequestSource> {
    const pod = typeof of === "string" ? (await this.pods(of))[0] : of;
    return inPod(this.nodeOf(pod), pod?.status?.podIp ?? "");
  }

  /** Waits until the service has addresses, and returns them. */
  async addresses(name: string): Promise<ServiceAddresses> {
    return waitFor(
      async () => {
        const services = await this.#fleet.ask<ServiceJson[]>(["get", "services", ...NAMESPACE]);
        const found = services.find((service) => service.name === name);
        const [ip, ip6 = ""] = found?.virtualIps ?? [];
        return ip !== undefined && { ip, ip6, nodePort: found?.nodePorts?.[0]?.nodePort ?? 0 };
      },
      { what: `${name} has an address`, limitMs: LIMIT_MS },
    );
  }

  async nodeIsReady(node: FleetNode, ready: boolean): Promise<void> {
    await waitFor(
      async () => {
        const nodes = await this.#fleet.ask<{ name: string; ready?: boolean }[]>(["node", "ls"]);
        return nodes.some((it) => it.name === node.name && (it.ready === true) === ready);
      },
      { what: `${node.name} is ${ready ? "ready" : "given up"}`, limitMs: LIMIT_MS },
    );
  }

  lookUp(place: RequestSource, name: string): Promise<string | string[]> {
    return resolve<string[]>(place, this.dnsServer, "A", name);
  }

  /**
   * Waits until the name server of the place's node returns exactly these addresses, in any order. Nodes receive
   * changes one by one.
   */
  async looksUp(place: RequestSource, name: string, addresses: readonly string[]): Promise<void> {
    let seen: string | readonly string[] = [];
    const desired = [...addresses].sort().join();
    await waitFor(
      async () => {
        seen = await this.lookUp(place, name);
        return Array.isArray(seen) && [...seen].sort().join() === desired;
      },
      { what: `${name} has the addresses ${desired}`, limitMs: LIMIT_MS, explain: () => String(seen) },
    );
  }

  /** Returns the service records; an empty list if there are none. */
  async servers(place: RequestSource, name: string): Promise<readonly ServerRecord[]> {
    const found = await resolve<ServerRecord[]>(place, this.dnsServer, "SRV", name);
    return typeof found === "string" ? [] : found;
  }

  /** Waits for an answer that matches, or for an error with a matching code. */
  async answers(place: RequestSource, address: string, port: number, expected: RegExp): Promise<void> {
    let seen: string | undefined;
    await waitFor(
      async () => {
        [seen] = await ask(place, "tcp", address, port);
        return expected.test(seen ?? "");
      },
      { what: `${address}:${port} answers ${expected}`, limitMs: LIMIT_MS, explain: () => `${seen}` },
    );
  }

  /** Waits until exactly these answer over many connections. */
  async onlyAnswers(
    place: RequestSource,
    address: string,
    port: number,
    expected: readonly string[],
  ): Promise<void> {
    let seen: readonly string[] = [];
    const desired = [...expected].sort().join();
    await waitFor(
      async () => {
        seen = distinct(await ask(place, "tcp", address, port, { times: 8 * expected.length }));
        return seen.join() === desired;
      },
      {
        what: `${address}:${port} is answered by ${desired} only`,
        limitMs: LIMIT_MS,
        explain: () => seen.join(),
      },
    );
  }
}

export function isServing({ status, stopping, nodeLost }: FleetPod): boolean {
  return status?.ready === true && stopping !== true && nodeLost !== true;
}

export function distinct(answers: readonly string[]): string[] {
  return [...new Set(answers)].sort();
}

/** Returns the pods' containers and restarts. A difference shows that something was restarted. */
export function runsOf(pods: readonly FleetPod[]): string[] {
  return pods
    .flatMap(
      ({ status }) => status?.containers?.map((it) => `${it.containerId} ${it.restartCount ?? 0}`) ?? [],
    )
    .sort();
}
