import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import {
  type GatewayCertificate,
  type GatewayChallenge,
  type GatewayHost,
  GatewayUpdate,
} from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import { makePrivateDirectory, writeFilesDurably } from "../journal/durable-files.ts";
import type { JournalKey } from "../journal/journal-key.ts";

/** The coordinator's last state of this node's gateway. */
export interface GatewayView {
  /** Empty: the node is none. */
  readonly gateway: string;
  /** Keyed by hostname. */
  readonly hosts: ReadonlyMap<string, GatewayHost>;
  /** Keyed by id. */
  readonly certificates: ReadonlyMap<string, GatewayCertificate>;
  readonly challenges: readonly GatewayChallenge[];
  readonly version: bigint;
}

/**
 * The result of loading at the start. "missing" also covers a host that never was a gateway: without a stored configuration the two
 * look the same.
 */
export type LoadedGateway = "sound" | "missing" | "damaged";

export interface KnownGatewayOptions {
  /** The directory of the stored configuration. Created if missing. */
  readonly dir: string;
  /** Certificates come with their keys, so what is kept is encrypted. */
  readonly key: Pick<JournalKey, "seal" | "unseal">;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  /** The stored configuration can't be read. By default it counts as an error. */
  readonly onDamage?: (path: string, reason: string) => void;
}

const FILE = "gateway.sealed";
/** Binds the sealed file to the gateway. It is no pod's uid, so a pod's record is never accepted in its place. */
const BOUND_TO = "gateway";
/** Many changes at once make one write. Changes that a crash loses come again with the next connection. */
const WRITE_AFTER_MS = 200;

/** Holds the gateway's configuration as received, and keeps it on disk so that it survives without the coordinator. */
export class KnownGateway implements GatewayView {
  readonly #options: KnownGatewayOptions;
  readonly #hosts = new Map<string, GatewayHost>();
  readonly #certificates = new Map<string, GatewayCertificate>();
  readonly #listeners = new Set<() => void>();
  #gateway = "";
  #challenges: readonly GatewayChallenge[] = [];
  #version = 0n;
  #begun: GatewayUpdate | undefined;
  #cancelWrite: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();

  #loaded: LoadedGateway;

  private constructor(options: KnownGatewayOptions, kept: GatewayUpdate | undefined, loaded: LoadedGateway) {
    this.#options = options;
    this.#loaded = loaded;
    if (kept !== undefined) this.#set(kept);
  }

  /** Loads the stored configuration. Unreadable parts are left out, and the coordinator sends them again. */
  static async open(options: KnownGatewayOptions): Promise<KnownGateway> {
    const path = join(options.dir, FILE);
    try {
      await makePrivateDirectory(options.dir);
      const bytes = await readFile(path);
      return new KnownGateway(options, GatewayUpdate.decode(options.key.unseal(BOUND_TO, bytes)), "sound");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT")
        return new KnownGateway(options, undefined, "missing");
      if (options.onDamage === undefined) options.onError(error);
      else options.onDamage(path, messageOf(error));
      return new KnownGateway(options, undefined, "damaged");
    }
  }

  /** Reports whether the stored configuration could be read; `sound` as well once the coordinator has sent all of it. */
  get loaded(): LoadedGateway {
    return this.#loaded;
  }

  get path(): string {
    return join(this.#options.dir, FILE);
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

  /** Calls after each update, whether or not it changed anything. Returns how to stop. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A new connection begins with everything: parts of an older one no longer count. */
  restart(): void {
    this.#begun = undefined;
  }

  take(update: GatewayUpdate): void {
    const whole = this.#begun === undefined ? update : joined(this.#begun, update);
    this.#begun = update.more ? whole : undefined;
    if (update.more) return;
    this.#set(whole);
    this.#cancelWrite ??= this.#options.clock.schedule(WRITE_AFTER_MS, () => this.#write());
    for (const listener of this.#listeners) listener();
  }

  /** Writes down what has not been written yet. */
  async close(): Promise<void> {
    if (this.#cancelWrite !== undefined) this.#write();
    await this.#writing;
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

  #write(): void {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
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
    const { dir, key } = this.#options;
    this.#writing = this.#writing
      .then(async () => writeFilesDurably(dir, [{ name: FILE, bytes: await key.seal(BOUND_TO, plain) }]))
      .catch(this.#options.onError);
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
