import { familyOf, type IpFamily } from "@forage/common/ip";
import { FAMILY_WORDS } from "./family-words.ts";
import type { PortMapping } from "./network.ts";
import {
  changedUdpPorts,
  deltaText,
  type PortElements,
  type PortTableShape,
  portElements,
  tableText,
} from "./port-rules.ts";
import { CommandFailed, type RunCommand } from "./run-command.ts";

export interface PortTableOptions extends PortTableShape {
  readonly run: RunCommand;
  readonly onProblem: (event: string, error: unknown) => void;
}

/**
 * The kernel's table of host ports for one family of addresses. Changes that arrive together or during an update go to the kernel
 * in one transaction. If the kernel rejects it, another program has changed the table, and the whole table is replaced.
 */
export class PortTable {
  readonly #options: PortTableOptions;
  readonly #desired = new Map<string, readonly [key: string, target: string][]>();
  /** The kernel's current elements. Undefined if unknown; the whole table is then replaced. */
  #present: PortElements | undefined;
  #replaceNext = false;
  #waiting: PromiseWithResolvers<void> | undefined;
  #working: Promise<void> | undefined;

  constructor(options: PortTableOptions) {
    this.#options = options;
  }

  get #family(): IpFamily {
    return familyOf(this.#options.podCidr);
  }

  /** Adds an entry to the content of the first replacement. */
  preset(podUid: string, address: string, mappings: readonly PortMapping[]): void {
    this.#desired.set(podUid, portElements(address, mappings));
  }

  /** Replaces the whole table atomically. */
  replace(): Promise<void> {
    this.#replaceNext = true;
    return this.#apply();
  }

  set(podUid: string, address: string, mappings: readonly PortMapping[]): Promise<void> {
    this.#desired.set(podUid, portElements(address, mappings));
    return this.#apply();
  }

  async delete(podUid: string): Promise<void> {
    if (this.#desired.delete(podUid)) await this.#apply();
  }

  /** Restores the table if another program removed it. Returns whether it was missing. */
  async repair(): Promise<boolean> {
    const { ip } = FAMILY_WORDS[this.#family];
    const tables = await this.#options.run("nft", ["list", "tables", ip]);
    if (tables.split("\n").includes(`table ${ip} ${this.#options.names.table}`)) return false;
    await this.replace();
    return true;
  }

  async settle(): Promise<void> {
    await this.#working;
  }

  #apply(): Promise<void> {
    this.#waiting ??= Promise.withResolvers<void>();
    const { promise } = this.#waiting;
    this.#working ??= this.#work();
    return promise;
  }

  async #work(): Promise<void> {
    // Let all changes of this turn join.
    await Promise.resolve();
    while (this.#waiting !== undefined) {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      await this.#commit().then(waiting.resolve, waiting.reject);
    }
    this.#working = undefined;
  }

  async #commit(): Promise<void> {
    const before = this.#replaceNext ? undefined : this.#present;
    this.#replaceNext = false;
    const desired: PortElements = new Map([...this.#desired.values()].flat());
    this.#present = undefined; // Unknown until the kernel has accepted the change.
    if (before === undefined) await this.#load(tableText(this.#options, desired));
    else await this.#loadDelta(before, desired);
    this.#present = desired;
    await this.#forgetPeers(changedUdpPorts(before ?? new Map(), desired));
  }

  async #loadDelta(before: PortElements, desired: PortElements): Promise<void> {
    const delta = deltaText(this.#options, before, desired);
    if (delta === "") return;
    try {
      await this.#load(delta);
    } catch (error) {
      this.#options.onProblem("host-port-table-differs", error);
      await this.#load(tableText(this.#options, desired));
    }
  }

  async #load(text: string): Promise<void> {
    await this.#options.run("nft", ["-f", "-"], { input: text });
  }

  /**
   * Removes the kernel's connection entries of these ports. Otherwise a UDP client that sends without pauses keeps
   * reaching the pod that had the port before, or no pod.
   */
  async #forgetPeers(ports: readonly number[]): Promise<void> {
    for (const port of ports) {
      const match = ["-p", "udp", "--orig-port-dst", String(port)];
      await forgetConnections(this.#options.run, match, this.#family).catch((error) =>
        this.#options.onProblem("conntrack-failed", error),
      );
    }
  }
}

/** Deletes matching tracked connections. Accepts that none matches. */
export async function forgetConnections(
  run: RunCommand,
  match: readonly string[],
  family: IpFamily,
): Promise<void> {
  try {
    await run("conntrack", ["-D", "-f", FAMILY_WORDS[family].conntrack, ...match]);
  } catch (error) {
    if (!(error instanceof CommandFailed && /\b0 flow entries/.test(error.stderr))) throw error;
  }
}
