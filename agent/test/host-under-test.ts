import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, isIP } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { execPath, pid } from "node:process";
import type { TestContext } from "node:test";
import { isOfTheDead } from "../../hack/lib/own-network.ts";
import { type Clock, systemClock } from "../src/clock.ts";
import { HostNetwork, type HostNetworkOptions } from "../src/network/host-network.ts";
import { instanceNames } from "../src/network/instance-names.ts";
import type { PodSandbox } from "../src/network/network.ts";
import { probePort } from "../src/network/probe-port.ts";
import { runCommand } from "../src/network/run-command.ts";
import { CONTRACT_HOST_PORTS, type NetworkHost } from "./network-contract.ts";
import { purge } from "./purge.ts";

const NAMESPACES = "/run/netns";
/**
 * `h`, the test's process id in five characters, and a number in two: the eight characters that an instance may have.
 */
const INSTANCE = /^forage-h([0-9a-z]{5})[0-9a-z]{2}-/;

/** An instance on the test's host, with functions to inspect and to break it. */
export class HostUnderTest implements NetworkHost {
  readonly instance: string;
  readonly dataDir: string;
  readonly warnings: string[] = [];
  /** Damaged files that networks have found. */
  readonly damageReports: string[] = [];
  readonly #options: Partial<HostNetworkOptions>;
  readonly #t: TestContext;
  readonly #networks: HostNetwork[] = [];
  readonly #children: ChildProcess[] = [];

  private constructor(
    t: TestContext,
    instance: string,
    dataDir: string,
    options: Partial<HostNetworkOptions>,
  ) {
    this.#t = t;
    this.instance = instance;
    this.dataDir = dataDir;
    this.#options = options;
  }

  /**
   * Sets up a host. The number distinguishes the hosts of one test file. Names of Nomad's driver begin with another
   * letter.
   */
  static async setUp(
    t: TestContext,
    number: number,
    options: Partial<HostNetworkOptions> = {},
  ): Promise<HostUnderTest> {
    await removeRemainsOfTheDead();
    const instance = `h${pid.toString(36).padStart(5, "0")}${number.toString(36).padStart(2, "0")}`;
    const root = await mkdtemp(join(tmpdir(), `forage-${instance}-network-`));
    const host = new HostUnderTest(t, instance, join(root, "network"), options);
    t.after(async () => {
      for (const child of host.#children) child.kill("SIGKILL");
      await Promise.all(host.#networks.map((network) => network.close()));
      await purge({ instance, dataDir: host.dataDir, restoreSysctls: false, run: runCommand });
      await rm(root, { recursive: true, force: true });
    });
    return host;
  }

  open(clock: Clock = systemClock, options: Partial<HostNetworkOptions> = {}): HostNetwork {
    const network = new HostNetwork(
      {
        instance: this.instance,
        dataDir: this.dataDir,
        podCidr: "10.64.0.0/16",
        hostPorts: CONTRACT_HOST_PORTS,
        access: { metadata: false, host: undefined },
        cniDirectory: "/usr/lib/cni",
        poolSize: 0,
        ...this.#options,
        ...options,
      },
      {
        clock,
        random: Math.random,
        run: runCommand,
        probePort,
        log: {
          info: () => undefined,
          warn: ({ event, ...fields }) => void this.warnings.push(`${event} ${JSON.stringify(fields)}`),
        },
        noteDamage: (path, reason) => this.damageReports.push(`${path}: ${reason}`),
      },
    );
    this.#networks.push(network);
    return network;
  }

  async reboot(): Promise<void> {
    for (const name of await this.namespaces()) await runCommand("ip", ["netns", "del", name]);
    await runCommand("ip", ["link", "del", `fg-${this.instance}`]);
    const { table, accessTable } = instanceNames(this.instance);
    for (const name of ["ip", "ip6"].flatMap((ip) => [`${ip} ${table}`, `${ip} ${accessTable}`])) {
      await runCommand("nft", ["-f", "-"], { input: `add table ${name}\ndelete table ${name}\n` });
    }
  }

  async destroy(sandbox: PodSandbox): Promise<void> {
    await runCommand("ip", ["netns", "del", basename(sandbox.namespacePath)]);
  }

  async namespaces(): Promise<string[]> {
    const names = await readdir(NAMESPACES);
    return names.filter((name) => name.startsWith(`forage-${this.instance}-`)).sort();
  }

  async leases(): Promise<string[]> {
    const names = await readdir(join(this.dataDir, "leases", `forage-${this.instance}`)).catch(() => []);
    return names.filter((name) => isIP(name) !== 0);
  }

  async usedSandboxes(): Promise<number> {
    const namespaces = await this.namespaces();
    const leases = await this.leases();
    const families = leases.some((it) => it.includes(":")) ? 2 : 1;
    assert.equal(leases.length, namespaces.length * families, "leases for each namespace");
    return namespaces.length;
  }

  async published(): Promise<ReadonlyMap<string, string>> {
    const tables = await runCommand("nft", ["list", "tables", "ip"]);
    const table = `forage_${this.instance}`;
    if (!tables.includes(table)) return new Map();
    const maps = await Promise.all(
      ["host_ports", "host_address_ports"].map((map) => runCommand("nft", ["list", "map", "ip", table, map])),
    );
    const element = /(?:([\d.]+) \. )?(tcp|udp|sctp) \. (\d+) : ([\d.]+) \. (\d+)/g;
    const elements = [...maps.join("").matchAll(element)];
    return new Map(
      elements.map(([, hostIp, protocol, hostPort, address, port]) => [
        `${hostIp === undefined ? "" : `${hostIp} `}${protocol} ${hostPort}`,
        `${address} ${port}`,
      ]),
    );
  }

  async occupy(protocol: "TCP" | "UDP", port: number): Promise<void> {
    if (protocol === "TCP") {
      const server = createServer().listen(port, "127.0.0.1");
      this.#t.after(() => server.close());
      await once(server, "listening");
    } else {
      const socket = createSocket("udp4").bind(port, "127.0.0.1");
      this.#t.after(() => socket.close());
      await once(socket, "listening");
    }
  }

  /** Runs `answer.ts` in a namespace until the test ends. */
  async answer(namespace: string, name: string, port: number): Promise<ChildProcess> {
    const args = [
      "netns",
      "exec",
      namespace,
      execPath,
      join(import.meta.dirname, "answer.ts"),
      name,
      String(port),
    ];
    const child = spawn("ip", args, { stdio: ["ignore", "pipe", "inherit"] });
    this.#children.push(child);
    await once(child.stdout, "data");
    return child;
  }
}

/** Sends a request from another namespace; see `ask.ts`. */
export function askFrom(
  namespace: string,
  protocol: "TCP" | "UDP",
  address: string,
  port: number,
): Promise<string> {
  const script = join(import.meta.dirname, "ask.ts");
  return runCommand("ip", ["netns", "exec", namespace, execPath, script, protocol, address, String(port)]);
}

async function removeRemainsOfTheDead(): Promise<void> {
  const isOfDead = (name: string) => {
    const owner = INSTANCE.exec(name)?.[1];
    return owner !== undefined && isOfTheDead(owner, 36);
  };
  for (const name of (await readdir(NAMESPACES)).filter(isOfDead))
    await runCommand("ip", ["netns", "del", name]);
  for (const name of (await readdir(tmpdir())).filter(isOfDead)) {
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}
