import type { GatewayStatus } from "@forage/proto/forage/agent/v1/agent";
import { type GatewayLog, NO_GATEWAY } from "./gateway-log.ts";

/** A node's report about its gateway, after validation. */
export interface GatewayReport {
  /** Whether the node's proxy accepts requests. */
  readonly ready: boolean;
  readonly message: string;
  readonly proxyVersion: string;
  /** The version up to which the node has applied all changes. */
  readonly version: number;
  /**
   * Parts of that version that are not applied: problems by hostname, or by "" for all hostnames.
   */
  readonly problems: ReadonlyMap<string, string>;
}

/** The options that all readers of a table share. */
export interface GatewayReaderOptions {
  /** Returns the log of the gateway that the node serves at present. */
  readonly logOf: (node: string) => GatewayLog | undefined;
  /** Called when a node's report has changed. */
  readonly reported: () => void;
}

/**
 * The length limit of texts in reports, which are kept in memory and shown. Longer texts are
 * truncated.
 */
const MAX_TEXT_LENGTH = 1_024;
const MAX_PROBLEMS = 1_000;

/**
 * Tracks the gateway configuration that one session of a node has received, and the reports of the
 * node.
 */
export class GatewayReader {
  readonly node: string;
  readonly #wake: () => void;
  readonly #options: GatewayReaderOptions;
  /**
   * The log from which messages were sent last; undefined if the node received an empty gateway
   * state.
   */
  #log: GatewayLog | undefined;
  #lastSent: number | undefined;
  #hasSentNone = false;
  #report: GatewayReport | undefined;

  /** Creates the reader. `wake` is called when messages may be due. */
  constructor(node: string, wake: () => void, options: GatewayReaderOptions) {
    this.node = node;
    this.#wake = wake;
    this.#options = options;
  }

  wake(): void {
    this.#wake();
  }

  /**
   * Returns the messages that the node has not received. A node that is not a gateway receives one
   * message, because it may have been a gateway when it last connected.
   */
  due(): readonly Buffer[] {
    const log = this.#options.logOf(this.node);
    if (log === undefined) {
      if (this.#hasSentNone) return [];
      this.#hasSentNone = true;
      this.#begin(undefined);
      return [NO_GATEWAY];
    }
    if (log !== this.#log) this.#begin(log);
    this.#hasSentNone = false;
    const { version, messages } = log.after(this.#lastSent);
    this.#lastSent = version;
    return messages;
  }

  receive({ ready, message, proxyVersion, version, problems }: GatewayStatus): void {
    // A version from an earlier stream does not refer to messages of this stream.
    const isKnown = this.#lastSent !== undefined && version <= BigInt(this.#lastSent);
    this.#report = {
      ready,
      message: bounded(message),
      proxyVersion: bounded(proxyVersion),
      version: isKnown ? Number(version) : 0,
      problems: new Map(
        problems.slice(0, MAX_PROBLEMS).map((it) => [bounded(it.hostname), bounded(it.message)] as const),
      ),
    };
    this.#options.reported();
  }

  /** The node's report; undefined until its first report after it became a gateway. */
  get report(): GatewayReport | undefined {
    return this.#report;
  }

  #begin(log: GatewayLog | undefined): void {
    this.#log = log;
    this.#lastSent = undefined;
    this.#report = undefined;
  }
}

function bounded(text: string): string {
  return text.slice(0, MAX_TEXT_LENGTH).toWellFormed();
}
