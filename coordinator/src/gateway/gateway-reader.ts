import type { GatewayStatus } from "@forage/proto/forage/agent/v1/agent";
import { type GatewayLog, noGateway } from "./gateway-log.ts";

/** A node's report about its gateway, after validation. */
export interface GatewayReport {
  /** Whether the node's proxy takes requests. */
  readonly ready: boolean;
  readonly message: string;
  readonly proxyVersion: string;
  /** The node has applied all changes up to this version. */
  readonly version: number;
  /** Keyed by hostname, or "" for all: what isn't, though it belongs to that version. */
  readonly problems: ReadonlyMap<string, string>;
}

export interface GatewayReaderOptions {
  readonly node: string;
  /** Returns the log of the gateway that the node serves now. */
  readonly logOf: (node: string) => GatewayLog | undefined;
  /** Called when something may be due. */
  readonly wake: () => void;
  /** Called when the node's report has changed. */
  readonly said: () => void;
}

/** The limit of a text's length. Longer ones are cut, because they are kept in memory and shown. */
const MAX_TEXT_LENGTH = 1_024;
const MAX_PROBLEMS = 1_000;

/** Tracks the gateway configuration that one session of a node has received, and the node's reports. */
export class GatewayReader {
  readonly #options: GatewayReaderOptions;
  /** The log that was sent last. Undefined if the node has received an empty gateway state. */
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

  /**
   * Returns the messages that the node lacks. A node that is no gateway gets one message, because it may have been a gateway when
   * it last connected.
   */
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
    // A version from an earlier stream says nothing about the messages on this one.
    const believed = this.#told !== undefined && version <= BigInt(this.#told);
    this.#report = {
      ready,
      message: bounded(message),
      proxyVersion: bounded(proxyVersion),
      version: believed ? Number(version) : 0,
      problems: new Map(
        problems.slice(0, MAX_PROBLEMS).map((it) => [bounded(it.hostname), bounded(it.message)] as const),
      ),
    };
    this.#options.said();
  }

  /** Undefined until the node's first report after it became a gateway. */
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
  return text.slice(0, MAX_TEXT_LENGTH).toWellFormed();
}
