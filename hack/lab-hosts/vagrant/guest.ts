import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunOptions, type RunResult, run } from "../../lib/run.ts";
import { SetupError } from "../../lib/setup-error.ts";
import { waitFor } from "../../lib/wait-for.ts";
import type { LabHost } from "../lab-plan.ts";
import { shellLine } from "../ssh-host.ts";

/** The guest's interface in the network of the hosts. */
export interface Link {
  readonly device: string;
  /** Its link-layer address. */
  readonly address: string;
}

const READY_LIMIT_MS = 5 * 60_000;
const EVERY_MS = 200;
const CONSOLE_END = 2_000;
const SSH_OPTIONS = [
  ...["-o", "ConnectTimeout=10", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"],
  // A machine without power doesn't end its connections.
  ...["-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=5"],
];

/** A machine that Vagrant has made, accessed by SSH. Its directory contains the SSH configuration. */
export class Guest {
  readonly #host: LabHost;
  readonly #sshFile: string;
  readonly #linkFile: string;
  readonly #consoleFile: string;

  constructor(dir: string, host: LabHost) {
    this.#host = host;
    this.#sshFile = join(dir, `${host.name}.ssh`);
    this.#linkFile = join(dir, `${host.name}.link`);
    this.#consoleFile = join(dir, `${host.name}.console`);
  }

  /** Whether it was booted and not turned off since. A machine that turned itself off still counts as booted. */
  get isBooted(): boolean {
    return existsSync(this.#sshFile);
  }

  /** Stores the output of `vagrant ssh-config`. */
  saveSshConfig(text: string): void {
    writeFileSync(this.#sshFile, text, { mode: 0o600 });
  }

  forgetSshConfig(): void {
    rmSync(this.#sshFile, { force: true });
  }

  /** Returns the command line that runs a program as root. Throws NOT_READY if the machine is off. */
  command(argv: readonly string[], options: readonly string[] = []): string[] {
    const { name } = this.#host;
    if (!this.isBooted) throw new SetupError("NOT_READY", `${name} is off`, `sudo hack/lab boot ${name}`);
    // The machine's user is an ordinary one.
    const line = shellLine(argv, ["sudo", "--non-interactive"]);
    return ["ssh", "-F", this.#sshFile, ...SSH_OPTIONS, ...options, name, line];
  }

  async exec(argv: readonly string[], options?: RunOptions): Promise<RunResult> {
    const [file = "", ...args] = this.command(argv);
    return run(file, args, options);
  }

  /** Waits until the machine's systemd has started everything. */
  async waitUntilUp(signal: AbortSignal | undefined): Promise<void> {
    const stop = signal && { signal };
    const isUp = async (): Promise<boolean> => {
      const { stdout } = await this.exec(["systemctl", "is-system-running", "--wait"], {
        ...{ allowFailure: true, timeoutMs: READY_LIMIT_MS },
        ...stop,
      });
      // Degraded means that a unit has failed, which the operator has to see, as on every host.
      return ["running", "degraded"].includes(stdout.trim());
    };
    await waitFor(isUp, {
      ...{ what: `${this.#host.name} has booted`, limitMs: READY_LIMIT_MS, everyMs: EVERY_MS },
      ...stop,
      explain: () => this.console.slice(-CONSOLE_END),
    });
  }

  /** The interface at the last boot; `undefined` if the machine never booted. */
  get link(): Link | undefined {
    if (!existsSync(this.#linkFile)) return undefined;
    return JSON.parse(readFileSync(this.#linkFile, "utf8")) as Link;
  }

  /** Finds the interface, whose name depends on the box and the provider, and stores it. */
  async findLink(): Promise<void> {
    const { name, address } = this.#host;
    const { stdout } = await this.exec(["ip", "-4", "-oneline", "address", "show", "to", address]);
    const device = /^\d+: ([^\s@:]+)/.exec(stdout)?.[1];
    if (device === undefined)
      throw new SetupError(
        "COMMAND_FAILED",
        `${name} has no interface with the address ${address}`,
        `see what the provider says: sudo hack/lab logs ${name}`,
      );
    const shown = await this.exec(["cat", `/sys/class/net/${device}/address`]);
    writeFileSync(this.#linkFile, JSON.stringify({ device, address: shown.stdout.trim() }));
  }

  /** The output of Vagrant from booting the machine. */
  get console(): string {
    return existsSync(this.#consoleFile) ? readFileSync(this.#consoleFile, "utf8") : "";
  }

  addToConsole(text: string): void {
    appendFileSync(this.#consoleFile, text);
  }
}
