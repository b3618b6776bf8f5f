import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import { type ServiceState, ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import { makePrivateDirectory, writeFilesDurably } from "../journal/durable-files.ts";
import { decodeRecord, encodeRecord, isFramed, RECORD_KIND } from "../journal/record-frame.ts";

/** The coordinator's last state of all services. */
export interface ServicesView {
  /** Keyed by `namespace/name`. */
  readonly services: ReadonlyMap<string, ServiceState>;
  /** Empty until the coordinator's first message. */
  readonly clusterDomain: string;
  readonly virtualIpRanges: readonly string[];
}

/**
 * The result of loading at the start. "missing" also covers a host that never had services: without stored services the two look the
 * same.
 */
export type LoadedServices = "sound" | "missing" | "damaged";

export interface KnownServicesOptions {
  /** The directory of the stored services. Created if missing. */
  readonly dir: string;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  /** The stored services can't be read. */
  readonly onDamage?: (path: string, reason: string) => void;
}

const FILE = "services.bin";
/** Many changes at once make one write. Changes that a crash loses come again with the next connection. */
const WRITE_AFTER_MS = 2_000;

/** The services of the cluster, kept on disk so that names and addresses go on without the coordinator. */
export class KnownServices implements ServicesView {
  readonly #options: KnownServicesOptions;
  readonly #services = new Map<string, ServiceState>();
  readonly #listeners = new Set<(changed: ReadonlySet<string>) => void>();
  #head: Pick<ServicesView, "clusterDomain" | "virtualIpRanges"> = { clusterDomain: "", virtualIpRanges: [] };
  #begun: ServiceUpdate | undefined;
  #cancelWrite: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #loaded: LoadedServices;

  private constructor(
    options: KnownServicesOptions,
    kept: ServiceUpdate | undefined,
    loaded: LoadedServices,
  ) {
    this.#options = options;
    this.#loaded = loaded;
    if (kept === undefined) return;
    this.#head = headOf(kept);
    for (const service of kept.upserts) this.#services.set(keyOf(service), service);
  }

  /** Loads the stored services. Unreadable ones are left out, and the coordinator sends them again. */
  static async open(options: KnownServicesOptions): Promise<KnownServices> {
    const path = join(options.dir, FILE);
    try {
      await makePrivateDirectory(options.dir);
      return new KnownServices(options, decode(await readFile(path)), "sound");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT")
        return new KnownServices(options, undefined, "missing");
      options.onDamage?.(path, messageOf(error));
      return new KnownServices(options, undefined, "damaged");
    }
  }

  /** Reports whether the stored services could be read; `sound` as well once the coordinator has sent all of them. */
  get loaded(): LoadedServices {
    return this.#loaded;
  }

  get path(): string {
    return join(this.#options.dir, FILE);
  }

  get services(): ReadonlyMap<string, ServiceState> {
    return this.#services;
  }

  get clusterDomain(): string {
    return this.#head.clusterDomain;
  }

  get virtualIpRanges(): readonly string[] {
    return this.#head.virtualIpRanges;
  }

  /**
   * Calls with the keys of services that changed, came or went, and once when `loaded` becomes sound. Returns how to stop.
   */
  subscribe(listener: (changed: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A new connection begins with everything: parts of an older one no longer count. */
  restart(): void {
    this.#begun = undefined;
  }

  take(update: ServiceUpdate): void {
    const begun = this.#begun;
    const whole =
      begun === undefined
        ? update
        : {
            ...update,
            full: begun.full,
            upserts: [...begun.upserts, ...update.upserts],
            removals: [...begun.removals, ...update.removals],
          };
    this.#begun = update.more ? whole : undefined;
    if (!update.more) this.#apply(whole);
  }

  /** Writes down what has not been written yet. */
  async close(): Promise<void> {
    if (this.#cancelWrite !== undefined) this.#write();
    await this.#writing;
  }

  #apply(update: ServiceUpdate): void {
    const isFirst = update.full && this.#loaded !== "sound";
    if (update.full) this.#loaded = "sound";
    const changed = new Set<string>();
    const head = headOf(update);
    // Names and ranges concern all of them.
    const headChanged = JSON.stringify(head) !== JSON.stringify(this.#head);
    this.#head = head;
    const upserts = new Map(update.upserts.map((service) => [keyOf(service), service]));
    const gone = update.full
      ? [...this.#services.keys()].filter((key) => !upserts.has(key))
      : update.removals.map(keyOf);
    for (const key of gone) if (this.#services.delete(key)) changed.add(key);
    for (const [key, service] of upserts) {
      const before = this.#services.get(key);
      this.#services.set(key, service);
      if (headChanged || before === undefined || !same(before, service)) changed.add(key);
    }
    if (changed.size === 0 && !headChanged && !isFirst) return;
    this.#cancelWrite ??= this.#options.clock.schedule(WRITE_AFTER_MS, () => this.#write());
    for (const listener of this.#listeners) listener(changed);
  }

  #write(): void {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
    const payload = ServiceUpdate.encode(
      ServiceUpdate.fromPartial({
        full: true,
        upserts: [...this.#services.values()],
        clusterDomain: this.#head.clusterDomain,
        virtualIpRanges: [...this.#head.virtualIpRanges],
      }),
    ).finish();
    const bytes = encodeRecord(RECORD_KIND.services, payload);
    this.#writing = this.#writing
      .then(() => writeFilesDurably(this.#options.dir, [{ name: FILE, bytes }]))
      .catch(this.#options.onError);
  }
}

/** Older agents wrote the message by itself, without a checksum. */
function decode(bytes: Buffer): ServiceUpdate {
  if (bytes.byteLength === 0) throw new Error("it is empty");
  return ServiceUpdate.decode(isFramed(bytes) ? decodeRecord(RECORD_KIND.services, bytes) : bytes);
}

function headOf({ clusterDomain, virtualIpRanges }: ServiceUpdate) {
  return { clusterDomain, virtualIpRanges };
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

function same(a: ServiceState, b: ServiceState): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
