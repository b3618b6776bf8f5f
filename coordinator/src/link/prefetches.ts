import {
  type ImagePrefetch,
  ImagePrefetches,
  type ImagePull,
  type RegistryCredential,
} from "@forage/proto/forage/agent/v1/agent";
import type { ImagesOnNode, Prefetcher, PrefetchRequest } from "../control/workload/prefetch.ts";
import { LastSent, type LastSentOptions } from "../feed/last-sent.ts";
import { imagesOf } from "../model/images.ts";
import type { Workload } from "../model/workload.ts";
import type { Clock } from "../time/clock.ts";

export interface PrefetchesOptions {
  readonly clock: Clock;
  /** Returns the credentials with which the workload's pods pull images. */
  readonly credentialsOf: (workload: Workload) => RegistryCredential[];
  /** The limit of the wait for a response. Default: longer than any agent that supports prefetching needs. */
  readonly answerMs?: number;
}

interface Wish extends PrefetchRequest {
  readonly key: string;
}

/** One connection of a node. */
interface Reader {
  readonly onChange: () => void;
  /** The last reports of the requested images, by id. Undefined: there are none. */
  answers: ReadonlyMap<string, ImagePull> | undefined;
  /** Ends the wait for the first response. */
  cancel: (() => void) | undefined;
  silent: boolean;
}

/** The limit of the wait for a response. Agents respond at once that they are pulling. */
const ANSWER_LIMIT_MS = 10_000;
/** The delay after which sockets have been read, which happens between two timers. */
const UNREAD_MS = 100;

/**
 * Tracks which images nodes should pull ahead of pods, and their progress. Everything is in memory, and is requested again
 * after a restart of either side.
 */
export class Prefetches implements Prefetcher {
  readonly #options: PrefetchesOptions;
  /** The requests by workload. */
  readonly #wishes = new Map<string, Wish>();
  readonly #byNode = new Map<string, Set<string>>();
  readonly #readers = new Map<string, Reader>();
  readonly #listeners = new Set<(workloadKey: string) => void>();
  readonly #messages: LastSentOptions<ImagePrefetches> = {
    read: (node) => {
      const requests = this.requestsFor(node);
      return requests.images.length === 0 ? undefined : requests;
    },
    nothing: { images: [] },
    encode: (requests) => ImagePrefetches.encode(requests).finish(),
  };

  constructor(options: PrefetchesOptions) {
    this.#options = options;
  }

  setRequest(key: string, request: PrefetchRequest | undefined): void {
    const before = this.#wishes.get(key);
    if (before === undefined && request === undefined) return;
    if (before !== undefined && request !== undefined && isSame(before, request)) return;
    for (const node of before?.nodes ?? []) this.#unlist(node, key);
    if (request === undefined || request.nodes.length === 0) this.#wishes.delete(key);
    else this.#wishes.set(key, { ...request, key });
    for (const node of request?.nodes ?? [])
      this.#byNode.set(node, (this.#byNode.get(node) ?? new Set()).add(key));
    for (const node of new Set([...(before?.nodes ?? []), ...(request?.nodes ?? [])]))
      this.#readers.get(node)?.onChange();
  }

  imagesOn(key: string, templateHash: string, node: string): ImagesOnNode {
    const request = this.#wishes.get(key);
    if (request?.workload.templateHash !== templateHash || !request.nodes.includes(node))
      return { type: "unasked" };
    const reader = this.#readers.get(node);
    if (reader?.silent) return { type: "unanswered" };
    const images = imagesOf(request.workload.template);
    const answers = images.map(({ image }, index) => ({
      image,
      pull: reader?.answers?.get(idOf(request, index)),
    }));
    for (const { image, pull } of answers) {
      if (pull !== undefined && pull.failure !== "")
        return { type: "failed", reason: pull.failure, image, message: pull.message };
    }
    const missing = answers.find(({ pull }) => !pull?.present);
    return missing === undefined
      ? { type: "present" }
      : { type: "pulling", message: missing.pull?.message ?? "" };
  }

  /** Calls the listener with each workload whose progress has changed. Returns a function that ends the subscription. */
  subscribe(listener: (workloadKey: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Registers a connection of a node. Calls `onChange` when its requests change. Returns a function that ends the
   * registration.
   */
  read(node: string, onChange: () => void): () => void {
    this.#readers.get(node)?.cancel?.();
    const reader: Reader = { onChange, answers: undefined, cancel: undefined, silent: false };
    this.#readers.set(node, reader);
    this.#notify(node);
    return () => {
      if (this.#readers.get(node) !== reader) return;
      reader.cancel?.();
      this.#readers.delete(node);
      this.#notify(node);
    };
  }

  /**
   * Returns all images that the node has to pull now. The result contains credentials and must only be sent to the node.
   */
  requestsFor(node: string): ImagePrefetches {
    const { clock, credentialsOf, answerMs = ANSWER_LIMIT_MS } = this.#options;
    const wishes = [...(this.#byNode.get(node) ?? [])].flatMap((key) => this.#wishes.get(key) ?? []);
    const reader = this.#readers.get(node);
    if (reader !== undefined && wishes.length > 0) {
      reader.cancel ??= clock.schedule(answerMs, () => {
        // After a pause of the process, the response may still be unread in the socket, which is read before the next
        // timer.
        reader.cancel = clock.schedule(UNREAD_MS, () => {
          reader.silent = true;
          this.#notify(node);
        });
      });
    }
    return { images: wishes.flatMap((request) => onWire(request, credentialsOf(request.workload))) };
  }

  /** Returns the images that the node has to pull for workloads of the namespace. */
  imagesFor(node: string, namespace: string): string[] {
    return [...(this.#byNode.get(node) ?? [])].flatMap((key) => {
      const workload = this.#wishes.get(key)?.workload;
      return workload?.namespace === namespace ? imagesOf(workload.template).map(({ image }) => image) : [];
    });
  }

  /** Returns a tracker of the requests that one session of the node has sent. */
  sessionOf(node: string): LastSent<ImagePrefetches> {
    return new LastSent(node, this.#messages);
  }

  /** Records a node's report about all requested images. */
  receive(node: string, images: readonly ImagePull[]): void {
    const reader = this.#readers.get(node);
    if (reader === undefined) return;
    // The node has the request. From now on, a missing report means that the image is still being pulled.
    reader.cancel?.();
    reader.cancel = () => {};
    reader.silent = false;
    reader.answers = new Map(images.map((pull) => [pull.id, pull]));
    this.#notify(node);
  }

  #unlist(node: string, key: string): void {
    const keys = this.#byNode.get(node);
    keys?.delete(key);
    if (keys?.size === 0) this.#byNode.delete(node);
  }

  #notify(node: string): void {
    for (const key of this.#byNode.get(node) ?? []) for (const listener of this.#listeners) listener(key);
  }
}

function onWire(request: Wish, registryCredentials: RegistryCredential[]): ImagePrefetch[] {
  const { namespace, template } = request.workload;
  return imagesOf(template).map(({ image, pullPolicy }, index) => {
    return { id: idOf(request, index), namespace, image, pullPolicy, registryCredentials };
  });
}

function idOf({ key, workload }: Wish, index: number): string {
  return `${key} ${workload.templateHash} ${index}`;
}

function isSame(a: PrefetchRequest, b: PrefetchRequest): boolean {
  if (a.workload.templateHash !== b.workload.templateHash || a.nodes.length !== b.nodes.length) return false;
  const nodes = new Set(a.nodes);
  return b.nodes.every((node) => nodes.has(node));
}
