import type { GatewayStatus } from "@forage/proto/forage/agent/v1/agent";
import { type GatewayLog, noGateway } from "./gateway-log.ts";

/** What a node says of itself as a gateway, as far as it can be believed. */
export interface GatewayReport {
  /** Its proxy takes requests. */
  readonly ready: boolean;
  readonly message: string;
  readonly proxyVersion: string;
  /** All changes up to this version are in force. */
  readonly version: number;
  /** By hostname, or "" for all: what isn't, though it belongs to that version. */
  readonly problems: ReadonlyMap<string, string>;
}

export interface GatewayReaderOptions {
  readonly node: string;
  /** Of the gateway that the node serves now. */
  readonly logOf: (node: string) => GatewayLog | undefined;
  /** There may be something due. */
  readonly wake: () => void;
  /** The node has said something new. */
  readonly said: () => void;
}

/** Longer ones are cut: they are kept in memory and shown. */
const maxTextLength = 1_024;
const maxProblems = 1_000;

/** What one session of a node has been told as a gateway, and what it says. */
export class GatewayReader {
  readonly #options: GatewayReaderOptions;
  /** What it was told last; undefined: that it is none. */
  #log: GatewayLog | undefined;
  #told: number | undefined;
  #toldNone = false;
  #report: GatewayReport | undefined;

  constructor(options: GatewayReaderOptions) {
    this.#options = options;
  }

  get node(): string {
    return this.#options.node;
  }

  wake(): void {
    this.#options.wake();
  }

  /** What the node lacks. One that is no gateway is told so, once: it may have been one when it was last connected. */
  due(): readonly Buffer[] {
    const log = this.#options.logOf(this.#options.node);
    if (log === undefined) {
      if (this.#toldNone) return [];
      this.#toldNone = true;
      this.#begin(undefined);
      return [noGateway()];
    }
    if (log !== this.#log) this.#begin(log);
    this.#toldNone = false;
    const { version, messages } = log.after(this.#told);
    this.#told = version;
    return messages;
  }

  take({ ready, message, proxyVersion, version, problems }: GatewayStatus): void {
    // What is in force of an earlier stream says nothing of what was told on this one.
    const believed = this.#told !== undefined && version <= BigInt(this.#told);
    this.#report = {
      ready,
      message: bounded(message),
      proxyVersion: bounded(proxyVersion),
      version: believed ? Number(version) : 0,
      problems: new Map(
        problems.slice(0, maxProblems).map((it) => [bounded(it.hostname), bounded(it.message)] as const),
      ),
    };
    this.#options.said();
  }

  /** Undefined: it has said nothing since it was told that it is a gateway. */
  get report(): GatewayReport | undefined {
    return this.#report;
  }

  #begin(log: GatewayLog | undefined): void {
    this.#log = log;
    this.#told = undefined;
    this.#report = undefined;
  }
}

function bounded(text: string): string {
  return text.slice(0, maxTextLength).toWellFormed();
}
