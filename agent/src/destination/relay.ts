import type { GetDestination } from "@forage/proto/destination";
import { type ServiceError, status } from "@grpc/grpc-js";
import type { Clock } from "../clock.ts";
import { ENDPOINTS, PASS_ON, PROFILE } from "./known-answer.ts";
import { Lookup, type ReaderSink, type UpstreamEvents } from "./lookup.ts";

export type LookupMethod = "get" | "getProfile";

/** The client of a look-up: a pod, or a process on the host's own network. */
export interface RelayClient {
  /** The client's address, by which limits apply. */
  readonly address: string;
  /** The pod's namespace. Undefined for a process of the host. */
  readonly namespace: string | undefined;
}

export interface RelayOptions {
  /** Opens a stream from the coordinator and returns a function that cancels it. */
  readonly open: (
    method: LookupMethod,
    request: GetDestination,
    namespace: string | undefined,
    events: UpstreamEvents,
  ) => () => void;
  readonly nodeName: string;
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
}

/** The limit of streams of a pod. A proxy needs two streams per service, so this is enough for a thousand services. */
const MAX_STREAMS_PER_CLIENT = 2_000;
/** A stream takes about 5 KB, so 100 MB at most. */
const MAX_STREAMS = 20_000;
/** The limit of look-ups. Each is one stream from the coordinator, which allows 10,000 per node. */
const MAX_LOOKUPS = 5_000;
/** A DNS name with its final dot, a colon and a port. */
const MAX_PATH_LENGTH = 260;

/** Serves the look-ups of this host's proxies, with one stream from the coordinator for each distinct look-up. */
export class DestinationRelay {
  readonly #options: RelayOptions;
  readonly #lookups = new Map<string, Pick<Lookup<unknown>, "read" | "readers" | "close">>();
  readonly #streamsOf = new Map<string, number>();
  #streams = 0;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  get size(): { readonly lookups: number; readonly streams: number } {
    return { lookups: this.#lookups.size, streams: this.#streams };
  }

  /**
   * Adds a reader. Returns a function that removes it, or undefined if the look-up was rejected; the sink then has the
   * reason.
   */
  read(
    method: LookupMethod,
    { path }: Pick<GetDestination, "path">,
    client: RelayClient,
    sink: ReaderSink,
  ): (() => void) | undefined {
    const refusal = this.#refusal(path, client);
    if (refusal !== undefined) {
      sink.fail(refusal);
      return undefined;
    }
    const { namespace, address } = client;
    const key = `${method} ${namespace ?? "*"} ${path}`;
    const lookup = this.#lookups.get(key) ?? this.#begin(key, method, path, namespace);
    this.#count(address, 1);
    const stop = lookup.read(sink);
    let stopped = false;
    return () => {
      if (stopped) return;
      stopped = true;
      this.#count(address, -1);
      stop();
    };
  }

  close(): void {
    for (const lookup of this.#lookups.values()) lookup.close();
    this.#lookups.clear();
  }

  #refusal(path: string, { address }: RelayClient): Pick<ServiceError, "code" | "details"> | undefined {
    if (path.length > MAX_PATH_LENGTH) {
      const details = `the path must have at most ${MAX_PATH_LENGTH} characters, has ${path.length}`;
      return { code: status.INVALID_ARGUMENT, details };
    }
    const exhausted = (details: string) => ({ code: status.RESOURCE_EXHAUSTED, details });
    if ((this.#streamsOf.get(address) ?? 0) >= MAX_STREAMS_PER_CLIENT)
      return exhausted(`${address} has ${MAX_STREAMS_PER_CLIENT} streams already; end some`);
    if (this.#streams >= MAX_STREAMS)
      return exhausted(`this host has ${MAX_STREAMS} streams; try again later`);
    if (this.#lookups.size >= MAX_LOOKUPS && !this.#dropIdle())
      return exhausted(`this host follows ${MAX_LOOKUPS} look-ups; try again later`);
    return undefined;
  }

  #begin(key: string, method: LookupMethod, path: string, namespace: string | undefined) {
    const { open, nodeName, clock, random } = this.#options;
    const contextToken = JSON.stringify({ ...(namespace !== undefined && { ns: namespace }), nodeName });
    const request: GetDestination = { scheme: "", path, contextToken };
    const common = {
      open: (events: UpstreamEvents) => open(method, request, namespace, events),
      clock,
      random,
      over: () => void this.#lookups.delete(key),
    };
    const lookup =
      method === "get"
        ? new Lookup({ ...common, answer: ENDPOINTS, instead: undefined })
        : new Lookup({ ...common, answer: PROFILE, instead: PASS_ON });
    this.#lookups.set(key, lookup);
    return lookup;
  }

  /** Drops a look-up without readers. Returns false if there was none. */
  #dropIdle(): boolean {
    for (const [key, lookup] of this.#lookups) {
      if (lookup.readers > 0) continue;
      lookup.close();
      this.#lookups.delete(key);
      return true;
    }
    return false;
  }

  #count(address: string, change: 1 | -1): void {
    this.#streams += change;
    const streams = (this.#streamsOf.get(address) ?? 0) + change;
    if (streams === 0) this.#streamsOf.delete(address);
    else this.#streamsOf.set(address, streams);
  }
}
