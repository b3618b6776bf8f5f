import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RunOptions, RunResult } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import type { HostDriver } from "./host-driver.ts";
import { driverFor, HOST_KINDS } from "./host-kinds.ts";
import { BRIDGE, CUT_BRIDGE, connectPort, createNetwork, networkName, removeNetwork } from "./lab-network.ts";
import type { LabHost } from "./lab-plan.ts";
import { type LabState, labPaths, readLabState, type SlowLink, writeLabState } from "./lab-state.ts";

/** Booted hosts on a network of their own. Everything is on disk, so that each command opens the lab again. */
export class Lab {
  readonly name: string;
  readonly driver: HostDriver;

  private constructor(name: string, kind: string) {
    this.name = name;
    this.driver = driverFor(kind, name);
  }

  /** Opens the lab of this name; throws NOT_READY if there is none. */
  static open(name: string): Lab {
    return new Lab(name, readLabState(name).kind);
  }

  /** Makes the lab with its network. Hosts are off. Throws NOT_READY if there is one of this name. */
  static async create(name: string, kind: string, hosts: readonly LabHost[]): Promise<Lab> {
    if (existsSync(labPaths(name).state))
      throw new SetupError(
        "NOT_READY",
        `a lab named ${name} exists`,
        `sudo hack/lab down --name ${name}, or choose another --name`,
      );
    const lab = new Lab(name, kind);
    writeLabState({ name, kind, hosts, cut: [], slow: {} });
    await createNetwork(name);
    return lab;
  }

  /** Removes everything of a lab, also of one that a crash has left half made. */
  static async remove(name: string): Promise<void> {
    for (const kind of HOST_KINDS) await driverFor(kind, name).removeAll();
    await removeNetwork(name);
    rmSync(labPaths(name).dir, { recursive: true, force: true, maxRetries: 3 });
  }

  get state(): LabState {
    return readLabState(this.name);
  }

  get hosts(): readonly LabHost[] {
    return this.state.hosts;
  }

  get coordinator(): LabHost {
    const found = this.hosts.find(({ runsCoordinator }) => runsCoordinator);
    if (found === undefined) throw new Error(`lab ${this.name} has no coordinator`);
    return found;
  }

  host(name: string): LabHost {
    const found = this.hosts.find((host) => host.name === name);
    if (found !== undefined) return found;
    const names = this.hosts.map((host) => host.name).join(", ");
    throw new SetupError("BAD_USAGE", `there is no host ${name}`, `give one of ${names}`);
  }

  /** Runs a program on the host as root. */
  exec(name: string, argv: readonly string[], options?: RunOptions): Promise<RunResult> {
    return this.driver.exec(this.host(name), argv, options);
  }

  /** Runs the `forage` command where the coordinator is. */
  forage(args: readonly string[], options?: RunOptions): Promise<RunResult> {
    return this.driver.exec(this.coordinator, ["forage", ...args], options);
  }

  /** Returns the command line that runs a program of this machine in the lab's network, where it reaches the hosts. */
  besideCommand(argv: readonly string[]): readonly string[] {
    return ["nsenter", `--net=/run/netns/${networkName(this.name)}`, "--", ...argv];
  }

  copy(name: string, from: string, to: string): Promise<void> {
    return this.driver.copy(this.host(name), from, to);
  }

  async boot(name: string, signal?: AbortSignal): Promise<void> {
    const { cut, slow } = this.state;
    const host = this.host(name);
    await this.driver.boot(host, {
      network: networkName(this.name),
      bridge: cut.includes(name) ? CUT_BRIDGE : BRIDGE,
      packages: labPaths(this.name).packages,
      ...(signal && { signal }),
    });
    if (slow[name] !== undefined) await this.driver.slow(host, slow[name]);
  }

  /** Shuts the host down and boots it again. */
  async reboot(name: string): Promise<void> {
    await this.driver.shutDown(this.host(name));
    await this.boot(name);
  }

  shutDown(name: string): Promise<void> {
    return this.driver.shutDown(this.host(name));
  }

  powerOff(name: string): Promise<void> {
    return this.driver.powerOff(this.host(name));
  }

  /** Cuts these hosts off from all others. They go on reaching each other. */
  async partition(names: readonly string[]): Promise<void> {
    const hosts = names.map((name) => this.host(name));
    const cut = [...new Set([...this.state.cut, ...names])];
    writeLabState({ ...this.state, cut });
    for (const host of hosts.filter((each) => this.driver.isRunning(each)))
      await connectPort(this.name, this.driver.portOf(host), CUT_BRIDGE);
  }

  /** Ends all partitions and all slowness. */
  async heal(): Promise<void> {
    const { cut, slow } = this.state;
    writeLabState({ ...this.state, cut: [], slow: {} });
    for (const host of this.hosts.filter((each) => this.driver.isRunning(each))) {
      if (cut.includes(host.name)) await connectPort(this.name, this.driver.portOf(host), BRIDGE);
      if (slow[host.name] !== undefined) await this.driver.slow(host, undefined);
    }
  }

  async slow(name: string, link: SlowLink): Promise<void> {
    const host = this.host(name);
    if (this.driver.isRunning(host)) await this.driver.slow(host, link);
    writeLabState({ ...this.state, slow: { ...this.state.slow, [name]: link } });
  }

  /** Returns the path of a file of the lab on this machine. */
  path(...parts: readonly string[]): string {
    return join(labPaths(this.name).dir, ...parts);
  }
}
