import { messageOf } from "@forage/common/message-of";
import {
  type GatewayCertificate,
  type GatewayChallenge,
  type GatewayHost,
  GatewayUpdate,
} from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import { PartGatherer } from "../feed/part-gatherer.ts";
import { type LoadedState, StateFile, type StateFiles } from "../feed/state-file.ts";
import type { JournalKey } from "../journal/journal-key.ts";

/** The coordinator's last state of this node's gateway. */
export interface GatewayView {
  /** The name of the gateway. Empty if the node is not a gateway. */
  readonly gateway: string;
  /** Hosts by name. */
  readonly hosts: ReadonlyMap<string, GatewayHost>;
  /** Certificates by id. */
  readonly certificates: ReadonlyMap<string, GatewayCertificate>;
  readonly challenges: readonly GatewayChallenge[];
  readonly version: bigint;
}

export interface KnownGatewayOptions {
  /** The directory of the stored configuration. Created if missing. */
  readonly dir: string;
  /** The stored configuration is encrypted with this key, because it contains the certificates' private keys. */
  readonly key: Pick<JournalKey, "seal" | "unseal">;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  /** Called if the stored configuration is unreadable. By default that is reported as an error. */
  readonly onDamage?: (path: string, reason: string) => void;
  /** Default: the host's disk. */
  readonly files?: StateFiles | undefined;
}

const FILE = "gateway.sealed";
/**
 * The context to which the sealed file is bound. It is not a pod's uid, so a pod's record is never accepted instead.
 */
const BOUND_TO = "gateway";
const WRITE_AFTER_MS = 200;

/** Holds the gateway's configuration as received, and stores it on disk for times without a coordinator. */
export class KnownGateway implements GatewayView {
  readonly #options: KnownGatewayOptions;
  readonly #gatherer = new PartGatherer<GatewayUpdate>({
    ...{ noun: "a gateway's configuration", hasMore: ({ more }) => more, join: joined },
  });
  readonly #file: StateFile;
  readonly #hosts = new Map<string, GatewayHost>();
  readonly #certificates = new Map<string, GatewayCertificate>();
  readonly #listeners = new Set<() => void>();
  #gateway = "";
  #challenges: readonly GatewayChallenge[] = [];
  #version = 0n;
  #loaded: LoadedState;

  private constructor(options: KnownGatewayOptions, kept: GatewayUpdate | undefined, loaded: LoadedState) {
    this.#options = options;
    const encode = (): Promise<Uint8Array> => this.#encode();
    this.#file = new StateFile({ ...options, name: FILE, writeAfterMs: WRITE_AFTER_MS, encode });
    this.#loaded = loaded;
    if (kept !== undefined) this.#set(kept);
  }

  /** Loads the stored configuration. Unreadable parts are left out, and the coordinator sends them again. */
  static async open(options: KnownGatewayOptions): Promise<KnownGateway> {
    const { key, onDamage, onError } = options;
    const { loaded, state } = await StateFile.load(
      { ...options, name: FILE },
      (bytes) => GatewayUpdate.decode(key.unseal(BOUND_TO, bytes)),
      (path, error) => (onDamage === undefined ? onError(error) : onDamage(path, messageOf(error))),
    );
    return new KnownGateway(options, state, loaded);
  }

  /** Reports whether the stored configuration could be read. Also `sound` once the coordinator has sent all of it. */
  get loaded(): LoadedState {
    return this.#loaded;
  }

  get path(): string {
    return this.#file.path;
  }

  get gateway(): string {
    return this.#gateway;
  }

  get hosts(): ReadonlyMap<string, GatewayHost> {
    return this.#hosts;
  }

  get certificates(): ReadonlyMap<string, GatewayCertificate> {
    return this.#certificates;
  }

  get challenges(): readonly GatewayChallenge[] {
    return this.#challenges;
  }

  get version(): bigint {
    return this.#version;
  }

  /** Calls the listener after each update, even if nothing changed. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Discards incomplete parts, because a new connection begins with the whole configuration. */
  restart(): void {
    this.#gatherer.restart();
  }

  /** Applies an update. Throws LinkError PROTOCOL if it has too many parts. */
  apply(update: GatewayUpdate): void {
    const whole = this.#gatherer.add(update);
    if (whole === undefined) return;
    this.#set(whole);
    this.#file.changed();
    for (const listener of this.#listeners) listener();
  }

  /** Writes pending changes to disk. */
  close(): Promise<void> {
    return this.#file.close();
  }

  #set(update: GatewayUpdate): void {
    if (update.full) {
      this.#loaded = "sound";
      this.#hosts.clear();
      this.#certificates.clear();
    }
    for (const name of update.removedHosts) this.#hosts.delete(name);
    for (const id of update.removedCertificates) this.#certificates.delete(id);
    for (const host of update.hosts) this.#hosts.set(host.hostname, host);
    for (const certificate of update.certificates) this.#certificates.set(certificate.id, certificate);
    this.#gateway = update.gateway;
    this.#challenges = update.challenges;
    this.#version = update.version;
  }

  #encode(): Promise<Uint8Array> {
    const plain = GatewayUpdate.encode({
      full: true,
      gateway: this.#gateway,
      hosts: [...this.#hosts.values()],
      removedHosts: [],
      certificates: [...this.#certificates.values()],
      removedCertificates: [],
      challenges: [...this.#challenges],
      more: false,
      version: this.#version,
    }).finish();
    return this.#options.key.seal(BOUND_TO, plain);
  }
}

/** Merges two updates into one. Where both name an entry, the later update wins. */
function joined(begun: GatewayUpdate, next: GatewayUpdate): GatewayUpdate {
  const goneHosts = new Set(next.removedHosts);
  const goneCertificates = new Set(next.removedCertificates);
  return {
    ...next,
    full: begun.full,
    hosts: [...begun.hosts.filter(({ hostname }) => !goneHosts.has(hostname)), ...next.hosts],
    removedHosts: [...begun.removedHosts, ...next.removedHosts],
    certificates: [...begun.certificates.filter(({ id }) => !goneCertificates.has(id)), ...next.certificates],
    removedCertificates: [...begun.removedCertificates, ...next.removedCertificates],
  };
}
