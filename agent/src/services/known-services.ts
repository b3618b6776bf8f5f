import { messageOf } from "@forage/common/message-of";
import { type ServiceState, ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import { PartGatherer } from "../feed/part-gatherer.ts";
import { type LoadedState, StateFile, type StateFiles } from "../feed/state-file.ts";
import { decodeRecord, encodeRecord, isFramed, RECORD_KIND } from "../journal/record-frame.ts";

/** The last state of all services that the coordinator sent. */
export interface ServicesView {
  /** Services by `namespace/name`. */
  readonly services: ReadonlyMap<string, ServiceState>;
  /** Empty until the coordinator's first message. */
  readonly clusterDomain: string;
  readonly virtualIpRanges: readonly string[];
}

export interface KnownServicesOptions {
  /** The directory of the stored services. Created if missing. */
  readonly dir: string;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  /** Called if the stored services can't be read. */
  readonly onDamage?: (path: string, reason: string) => void;
  /** Default: the host's disk. */
  readonly files?: StateFiles | undefined;
}

const FILE = "services.bin";
const WRITE_AFTER_MS = 2_000;

/** The services of the cluster, stored on disk so that names and addresses work without the coordinator. */
export class KnownServices implements ServicesView {
  readonly #gatherer = new PartGatherer<ServiceUpdate>({
    noun: "services",
    hasMore: ({ more }) => more,
    join: joined,
  });
  readonly #file: StateFile;
  readonly #services = new Map<string, ServiceState>();
  readonly #listeners = new Set<(changed: ReadonlySet<string>) => void>();
  #head: Pick<ServicesView, "clusterDomain" | "virtualIpRanges"> = { clusterDomain: "", virtualIpRanges: [] };
  #loaded: LoadedState;

  private constructor(options: KnownServicesOptions, kept: ServiceUpdate | undefined, loaded: LoadedState) {
    const encode = (): Uint8Array => this.#encode();
    this.#file = new StateFile({ ...options, name: FILE, writeAfterMs: WRITE_AFTER_MS, encode });
    this.#loaded = loaded;
    if (kept === undefined) return;
    this.#head = headOf(kept);
    for (const service of kept.upserts) this.#services.set(keyOf(service), service);
  }

  /** Loads the stored services. Unreadable ones are left out, and the coordinator sends them again. */
  static async open(options: KnownServicesOptions): Promise<KnownServices> {
    const { loaded, state } = await StateFile.load({ ...options, name: FILE }, decode, (path, error) =>
      options.onDamage?.(path, messageOf(error)),
    );
    return new KnownServices(options, state, loaded);
  }

  /** Reports whether the stored services could be read. Also `sound` once the coordinator has sent all of them. */
  get loaded(): LoadedState {
    return this.#loaded;
  }

  get path(): string {
    return this.#file.path;
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
   * Calls the listener with the keys of services that were changed, added or removed, and once when `loaded` becomes
   * sound. Returns a function that unsubscribes.
   */
  subscribe(listener: (changed: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Discards incomplete parts, because a new connection begins with the whole state. */
  restart(): void {
    this.#gatherer.restart();
  }

  /** Applies an update. Throws LinkError PROTOCOL if it has too many parts. */
  apply(update: ServiceUpdate): void {
    const whole = this.#gatherer.add(update);
    if (whole !== undefined) this.#apply(whole);
  }

  /** Writes pending changes to disk. */
  close(): Promise<void> {
    return this.#file.close();
  }

  #apply(update: ServiceUpdate): void {
    const isFirst = update.full && this.#loaded !== "sound";
    if (update.full) this.#loaded = "sound";
    const changed = new Set<string>();
    const head = headOf(update);
    // The domain and ranges affect all services.
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
    this.#file.changed();
    for (const listener of this.#listeners) listener(changed);
  }

  #encode(): Uint8Array {
    const update = ServiceUpdate.fromPartial({
      full: true,
      upserts: [...this.#services.values()],
      clusterDomain: this.#head.clusterDomain,
      virtualIpRanges: [...this.#head.virtualIpRanges],
    });
    return encodeRecord(RECORD_KIND.services, ServiceUpdate.encode(update).finish());
  }
}

/** Merges two parts into one. The last part names the removals. */
function joined(begun: ServiceUpdate, part: ServiceUpdate): ServiceUpdate {
  const upserts = [...begun.upserts, ...part.upserts];
  return { ...part, full: begun.full, upserts, removals: [...begun.removals, ...part.removals] };
}

/** Decodes the file. Older agents wrote the message without a checksum. */
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
