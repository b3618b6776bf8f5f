import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type HostTool, installMissing, isOnPath } from "../../lib/host-tools.ts";
import { SetupError } from "../../lib/setup-error.ts";
import type { BootOptions, HostDriver, Reach } from "../host-driver.ts";
import { ensureHostImage } from "../host-image.ts";
import { slowInterface } from "../lab-network.ts";
import type { LabHost } from "../lab-plan.ts";
import { labPaths, listLabs, readLabState } from "../lab-state.ts";
import { copyBySsh } from "../ssh-host.ts";
import { cutRules, REJOIN_RULES } from "./cut-rules.ts";
import { Guest } from "./guest.ts";
import { NoProviderError, stateIn, type Vagrant, vagrantIn } from "./vagrant-program.ts";

const KIND = "vagrant";
const VAGRANT_TOOLS: readonly HostTool[] = [
  { package: "vagrant", isThere: () => isOnPath("vagrant") },
  { package: "openssh-client", isThere: () => isOnPath("ssh") },
  { package: "rsync", isThere: () => isOnPath("rsync") },
];
/**
 * The address of this machine. VirtualBox gives hosts addresses of 192.168.56.0/21 only. The first network of these
 * belongs to hack/Vagrantfile without a lab.
 */
const GATEWAY = "192.168.60.1";
/** An estimate: a machine boots in tens of seconds, or in minutes without virtualization by the processor. */
const PATIENCE = 4;
/** The time limit of `vagrant up`, which downloads the box the first time. */
const UP_LIMIT_MS = 30 * 60_000;
const HALT_LIMIT_MS = 5 * 60_000;

/** Makes hosts with Vagrant, by hack/Vagrantfile and a provider of this machine. Each has its own kernel and clock. */
export function vagrantDriver(lab: string): HostDriver {
  const machines = new Machines(lab);
  return {
    kind: KIND,
    patience: PATIENCE,
    gateway: GATEWAY,
    async prepare(report) {
      await installMissing(VAGRANT_TOOLS, { report });
      await machines.assertProvider();
      // Hosts of all kinds install the same packages of Debian.
      await ensureHostImage(report);
    },
    createNetwork: async () => assertNetworkFree(lab),
    // The provider connects this machine with the network.
    besideCommand: (argv) => argv,
    boot: (host, options) => machines.boot(host, options),
    shutDown: (host) => machines.halt(host, []),
    powerOff: (host) => machines.halt(host, ["--force"]),
    isRunning: (host) => machines.isRunning(host),
    exec: async (host, argv, options) => machines.guest(host).exec(argv, options),
    terminalCommand: (host, argv) => {
      return machines.guest(host).command(argv, process.stdin.isTTY ? ["-t"] : []);
    },
    copy: (host, from, to) => copyBySsh((argv) => machines.guest(host).command(argv), from, to),
    async slow(host, link) {
      const guest = machines.guest(host);
      await slowInterface((argv, options) => guest.exec(argv, options), guest.link?.device ?? "", link);
    },
    connect: (host, reach) => machines.connect(host, reach),
    syncPackages: (host) => machines.syncPackages(host),
    consoleOf: (host) => machines.guest(host).console,
    removeAll: () => machines.destroy(),
  };
}

/**
 * The machines of one lab. Vagrant refuses some operations on two of them at a time, so they are run one after another.
 */
class Machines {
  readonly #lab: string;
  readonly #dir: string;
  /** The plan of the machines for hack/Vagrantfile. It is written before the first machine is made. */
  readonly #planFile: string;
  #last: Promise<unknown> = Promise.resolve();

  constructor(lab: string) {
    this.#lab = lab;
    this.#dir = join(labPaths(lab).dir, KIND);
    this.#planFile = join(this.#dir, "machines.json");
  }

  guest(host: LabHost): Guest {
    return new Guest(this.#dir, host);
  }

  /** Throws MISSING_TOOL if Vagrant can't make machines here. */
  async assertProvider(): Promise<void> {
    await this.#vagrant(["status"]);
  }

  async boot(host: LabHost, { reach, packages, signal }: BootOptions): Promise<void> {
    const guest = this.guest(host);
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const hosts = readLabState(this.#lab).hosts.map(({ name, address }) => ({ name, address }));
    writeFileSync(this.#planFile, JSON.stringify({ lab: this.#lab, hosts, packages }));
    const stop = signal && { signal };
    await this.#vagrant(["up", host.name, "--no-provision"], {
      ...{ timeoutMs: UP_LIMIT_MS, ...stop },
      onOutput: (text) => guest.addToConsole(text),
    });
    guest.saveSshConfig((await this.#run(["ssh-config", host.name], stop)).stdout);
    await guest.waitUntilUp(signal);
    await guest.findLink();
    if (reach !== "all") await this.connect(host, reach);
  }

  async halt(host: LabHost, options: readonly string[]): Promise<void> {
    if (!existsSync(this.#planFile)) return;
    await this.#vagrant(["halt", host.name, ...options], { timeoutMs: HALT_LIMIT_MS });
    this.guest(host).forgetSshConfig();
  }

  async isRunning(host: LabHost): Promise<boolean> {
    if (!this.guest(host).isBooted) return false;
    return stateIn((await this.#vagrant(["status", host.name])).stdout, host.name) === "running";
  }

  async connect(host: LabHost, reach: Reach): Promise<void> {
    const guest = this.guest(host);
    const peers = reach === "all" ? [] : reach.flatMap((peer) => this.guest(peer).link?.address ?? []);
    const input = reach === "all" ? REJOIN_RULES : cutRules(guest.link?.device ?? "", peers);
    const { exitCode, stderr } = await guest.exec(["nft", "-f", "-"], { input, allowFailure: true });
    if (exitCode === 0) return;
    throw new SetupError(
      "COMMAND_FAILED",
      `the network of ${host.name} can't be changed: ${stderr.trim()}`,
      `install nftables on it, as the agent's package does: sudo hack/lab exec ${host.name} apt-get install nftables`,
    );
  }

  async syncPackages({ name }: LabHost): Promise<void> {
    await this.#vagrant(["rsync", name]);
  }

  async destroy(): Promise<void> {
    if (existsSync(this.#planFile)) {
      await this.#vagrant(["destroy", "--force"], { timeoutMs: HALT_LIMIT_MS }).catch((error: unknown) => {
        // In this case Vagrant has made nothing.
        if (!(error instanceof NoProviderError)) throw error;
      });
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** Runs Vagrant with output that contains the type of an error. */
  #vagrant(...[args, options]: Parameters<Vagrant>): ReturnType<Vagrant> {
    return this.#run([...args, "--machine-readable"], options);
  }

  #run(...[args, options]: Parameters<Vagrant>): ReturnType<Vagrant> {
    const plan = existsSync(this.#planFile) ? this.#planFile : undefined;
    const vagrant = vagrantIn(join(this.#dir, "state"), plan);
    const result = this.#last.then(() => vagrant(args, options));
    this.#last = result.catch(() => {});
    return result;
  }
}

/** Throws NOT_READY if another lab has virtual machines, because the provider has a single network for all of them. */
function assertNetworkFree(lab: string): void {
  const isOther = (name: string): boolean => name !== lab && existsSync(labPaths(name).state);
  const other = listLabs().find((name) => isOther(name) && readLabState(name).kind === KIND);
  if (other === undefined) return;
  throw new SetupError(
    "NOT_READY",
    `lab ${other} has virtual machines, and only one lab at a time can`,
    `sudo hack/lab down --name ${other}`,
  );
}
