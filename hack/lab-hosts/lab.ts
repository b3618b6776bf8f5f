import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RunOptions, RunResult } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import type { HostDriver, Reach } from "./host-driver.ts";
import { driverFor, HOST_KINDS } from "./host-kinds.ts";
import { removeNetwork } from "./lab-network.ts";
import type { LabHost } from "./lab-plan.ts";
import { type LabState, labPaths, readLabState, type SlowLink, writeLabState } from "./lab-state.ts";

/** Booted hosts on a separate network. Its state is on disk, so each command opens the lab again. */
export class Lab {
  readonly name: string;
  readonly driver: HostDriver;

  private constructor(name: string, kind: string) {
    this.name = name;
    this.driver = driverFor(kind, name);
  }

  /** Opens the lab of this name. Throws NOT_READY if it doesn't exist. */
  static open(name: string): Lab {
    return new Lab(name, readLabState(name).kind);
  }

  /** Makes the lab with its network. Its hosts are off. Throws NOT_READY if the name is in use. */
  static async create(name: string, kind: string, hosts: readonly LabHost[]): Promise<Lab> {
    if (existsSync(labPaths(name).state))
      throw new SetupError(
        "NOT_READY",
        `a lab named ${name} exists`,
        `sudo hack/lab down --name ${name}, or choose another --name`,
      );
    const lab = new Lab(name, kind);
    await lab.driver.createNetwork();
    writeLabState({ name, kind, hosts, cut: [], slow: {} });
    return lab;
  }

  /** Removes everything of a lab, including one that a crash has left incomplete. */
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

  /** Runs the `forage` command on the coordinator's host. */
  forage(args: readonly string[], options?: RunOptions): Promise<RunResult> {
    return this.driver.exec(this.coordinator, ["forage", ...args], options);
  }

  /**
   * Returns the command line that runs a program of this machine in the lab's network, from which it can reach the
   * hosts.
   */
  besideCommand(argv: readonly string[]): readonly string[] {
    return this.driver.besideCommand(argv);
  }

  copy(name: string, from: string, to: string): Promise<void> {
    return this.driver.copy(this.host(name), from, to);
  }

  async boot(name: string, signal?: AbortSignal): Promise<void> {
    const { slow } = this.state;
    const host = this.host(name);
    await this.driver.boot(host, {
      reach: this.#reachOf(name),
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

  /** Cuts these hosts off from all others. They can still reach each other. */
  async partition(names: readonly string[]): Promise<void> {
    for (const name of names) this.host(name);
    const cut = [...new Set([...this.state.cut, ...names])];
    writeLabState({ ...this.state, cut });
    // Hosts that were cut off before can reach the new ones as well.
    for (const host of await this.running())
      if (cut.includes(host.name)) await this.driver.connect(host, this.#reachOf(host.name));
  }

  /** Ends all partitions and all delays of packets. */
  async heal(): Promise<void> {
    const { cut, slow } = this.state;
    writeLabState({ ...this.state, cut: [], slow: {} });
    for (const host of await this.running()) {
      if (cut.includes(host.name)) await this.driver.connect(host, "all");
      if (slow[host.name] !== undefined) await this.driver.slow(host, undefined);
    }
  }

  async slow(name: string, link: SlowLink): Promise<void> {
    const host = this.host(name);
    if (await this.driver.isRunning(host)) await this.driver.slow(host, link);
    writeLabState({ ...this.state, slow: { ...this.state.slow, [name]: link } });
  }

  /** Returns the running hosts. */
  async running(): Promise<readonly LabHost[]> {
    const { hosts } = this;
    const isRunning = await Promise.all(hosts.map((host) => this.driver.isRunning(host)));
    return hosts.filter((_, index) => isRunning[index]);
  }

  /** Updates the view that all running hosts have of the directory of packages. */
  async syncPackages(): Promise<void> {
    for (const host of await this.running()) await this.driver.syncPackages(host);
  }

  #reachOf(name: string): Reach {
    const { cut, hosts } = this.state;
    if (!cut.includes(name)) return "all";
    return hosts.filter((host) => host.name !== name && cut.includes(host.name));
  }

  /** Returns the path of a file of the lab on this machine. */
  path(...parts: readonly string[]): string {
    return join(labPaths(this.name).dir, ...parts);
  }
}
