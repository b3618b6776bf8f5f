import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath, pid } from "node:process";
import type { TestContext } from "node:test";
import { runCommand } from "../src/network/run-command.ts";
import { askFrom } from "./host-under-test.ts";

export const PORT = 8_080;

/** Hosts on a separate network: namespaces joined by a bridge. */
export class Lan {
  readonly #t: TestContext;
  readonly #dir: string;
  readonly #name: string;

  private constructor(t: TestContext, dir: string, name: string) {
    this.#t = t;
    this.#dir = dir;
    this.#name = name;
  }

  /** Creates a network. The number distinguishes the networks of one test file. */
  static async make(t: TestContext, number: number): Promise<Lan> {
    const name = `lan${number}`;
    const dir = await mkdtemp(join(tmpdir(), "forage-lan-"));
    t.after(async () => {
      await runCommand("ip", ["link", "del", name]);
      await rm(dir, { recursive: true, force: true });
    });
    await runCommand("ip", ["link", "add", name, "type", "bridge"]);
    await runCommand("ip", ["link", "set", name, "up"]);
    return new Lan(t, dir, name);
  }

  /** Returns host N, which has the addresses 192.0.2.N and 2001:db8::N, and answers with its name on port 8080. */
  async host(number: number): Promise<LanHost> {
    const name = `fgt-${pid}-${this.#name}-${number}`;
    const port = `${this.#name}-${number}`;
    const inside = ["-n", name];
    await runCommand("ip", ["netns", "add", name]);
    const children: ChildProcess[] = [];
    this.#t.after(async () => {
      for (const child of children) child.kill("SIGKILL");
      await runCommand("ip", ["link", "del", port]); // Programs that still end there would keep it.
      await runCommand("ip", ["netns", "del", name]);
    });
    await runCommand("ip", ["link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name]);
    await runCommand("ip", ["link", "set", port, "master", this.#name, "up"]);
    await runCommand("ip", [...inside, "address", "add", `192.0.2.${number}/24`, "dev", "eth0"]);
    await runCommand("ip", [...inside, "address", "add", `2001:db8::${number}/64`, "dev", "eth0", "nodad"]);
    for (const link of ["lo", "eth0"]) await runCommand("ip", [...inside, "link", "set", link, "up"]);
    const start: StartScript = (script, ...args) => {
      const command = [execPath, join(import.meta.dirname, script), ...args];
      const child = spawn("nsenter", [`--net=/run/netns/${name}`, "--", ...command], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      children.push(child);
      return child;
    };
    const answering = start("answer.ts", `host${number}`, String(PORT));
    await once(answering.stdout ?? answering, "data");
    return new LanHost(name, port, join(this.#dir, `host${number}`), start);
  }
}

/** An address of the host's interface, as in `ip`'s output. */
interface Present {
  readonly local: string;
  readonly valid_life_time: number;
}

/** Runs a file of this folder on the host. */
type StartScript = (script: string, ...args: readonly string[]) => ChildProcess;

const FOREVER = 4_294_967_295;

export class LanHost {
  readonly name: string;
  readonly events: string[] = [];
  readonly #port: string;
  readonly #dir: string;
  readonly #start: StartScript;
  #balancer: ChildProcess | undefined;

  constructor(name: string, port: string, dir: string, start: StartScript) {
    this.name = name;
    this.#port = port;
    this.#dir = dir;
    this.#start = start;
  }

  /** Sets the state of the host's agent. Starts an agent if there is none. */
  async setState(say: {
    ips?: readonly string[];
    alone?: boolean;
    heard?: boolean;
    started?: boolean;
  }): Promise<void> {
    const text = JSON.stringify(say);
    if (this.#balancer !== undefined) {
      this.#balancer.stdin?.write(`${text}\n`);
      return;
    }
    const child = this.#start("balancer.ts", this.#dir, text);
    this.#balancer = child;
    const ready = new Promise<void>((resolve) => {
      child.stdout?.setEncoding("utf8").on("data", (lines: string) => {
        for (const line of lines.trim().split("\n")) this.events.push(line);
        if (this.events.includes("ready")) resolve();
      });
    });
    await ready;
    this.events.splice(this.events.indexOf("ready"), 1);
  }

  /** Kills the agent. The kernel's state remains. */
  async kill(): Promise<void> {
    const child = this.#balancer;
    if (child === undefined) return;
    this.#balancer = undefined;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  ip(...args: readonly string[]): Promise<string> {
    return runCommand("ip", ["-n", this.name, ...args]);
  }

  /** Disconnects the host from the network, or reconnects it. */
  async connected(yes: boolean): Promise<void> {
    await runCommand("ip", ["link", "set", this.#port, yes ? "up" : "down"]);
  }

  /** Returns the seconds for which the kernel keeps the address. Undefined: the host does not have it. */
  async leaseOf(ip: string): Promise<number | undefined> {
    const [link] = JSON.parse(await this.ip("-json", "address", "show", "dev", "eth0")) as {
      addr_info: Present[];
    }[];
    const seconds = link?.addr_info.find(({ local }) => local === ip)?.valid_life_time;
    return seconds === FOREVER ? Number.POSITIVE_INFINITY : seconds;
  }

  async hardwareAddress(): Promise<string> {
    const [link] = JSON.parse(await this.ip("-json", "link", "show", "dev", "eth0"));
    return link.address;
  }

  /** Returns the hardware address that this host has cached for the address. */
  async neighbour(ip: string): Promise<string | undefined> {
    const known = JSON.parse((await this.ip("-json", "neigh", "show", ip)) || "[]");
    return known[0]?.lladdr;
  }

  /** Returns the name of the host that answers at the address. */
  async ask(ip: string): Promise<string> {
    return (await askFrom(this.name, "TCP", ip, PORT)).split(" ")[0] ?? "";
  }
}
