import {
  type ImagePrefetch,
  ImagePrefetches,
  type ImagePull,
  type RegistryCredential,
} from "@forage/proto/forage/agent/v1/agent";
import type { ImagesOnNode, Prefetcher, PrefetchRequest } from "../control/workload/prefetch.ts";
import { LastSent } from "../feed/last-sent.ts";
import { imagesOf } from "../model/images.ts";
import type { Workload } from "../model/workload.ts";
import type { Clock } from "../time/clock.ts";

export interface PrefetchesOptions {
  readonly clock: Clock;
  /** Logins that the workload's pods pull with. */
  readonly credentialsOf: (workload: Workload) => RegistryCredential[];
  /** Default: as long as an agent that knows what it is asked takes at the most, and then some. */
  readonly answerMs?: number;
}

interface Wish extends PrefetchRequest {
  readonly key: string;
}

/** One connection of a node. */
interface Reader {
  readonly onChange: () => void;
  /** The last reports of the requested images, by id. */
  readonly answers: Map<string, ImagePull>;
  /** Ends the wait for its first answer. */
  cancel: (() => void) | undefined;
  silent: boolean;
}

/** An answer comes at once, that it is being pulled at the least. */
const ANSWER_LIMIT_MS = 10_000;
/** Sockets are read between two timers. */
const UNREAD_MS = 100;

/**
 * Tracks which images nodes should pull ahead of pods, and their progress. All of it is in memory, and is requested again after a
 * restart of either side.
 */
export class Prefetches implements Prefetcher {
  readonly #options: PrefetchesOptions;
  /** Keyed by workload. */
  readonly #wishes = new Map<string, Wish>();
  readonly #byNode = new Map<string, Set<string>>();
  readonly #readers = new Map<string, Reader>();
  readonly #listeners = new Set<(workloadKey: string) => void>();

  constructor(options: PrefetchesOptions) {
    this.#options = options;
  }

  want(key: string, wish: PrefetchRequest | undefined): void {
    const before = this.#wishes.get(key);
    if (before === undefined && wish === undefined) return;
    if (before !== undefined && wish !== undefined && isSame(before, wish)) return;
    for (const node of before?.nodes ?? []) this.#unlist(node, key);
    if (wish === undefined || wish.nodes.length === 0) this.#wishes.delete(key);
    else this.#wishes.set(key, { ...wish, key });
    for (const node of wish?.nodes ?? [])
      this.#byNode.set(node, (this.#byNode.get(node) ?? new Set()).add(key));
    for (const node of new Set([...(before?.nodes ?? []), ...(wish?.nodes ?? [])]))
      this.#readers.get(node)?.onChange();
  }

  imagesOn(key: string, templateHash: string, node: string): ImagesOnNode {
    const wish = this.#wishes.get(key);
    if (wish?.workload.templateHash !== templateHash || !wish.nodes.includes(node))
      return { type: "unasked" };
    const reader = this.#readers.get(node);
    if (reader?.silent) return { type: "unanswered" };
    const images = imagesOf(wish.workload.template);
    const answers = images.map(({ image }, index) => ({
      image,
      pull: reader?.answers.get(idOf(wish, index)),
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

  /** Called with each workload of which something else is known; returns how to stop. */
  subscribe(listener: (workloadKey: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Registers a connected node. Calls `onChange` when its requests change. Returns a function that ends it. */
  read(node: string, onChange: () => void): () => void {
    this.#readers.get(node)?.cancel?.();
    const reader: Reader = { onChange, answers: new Map(), cancel: undefined, silent: false };
    this.#readers.set(node, reader);
    this.#tell(node);
    return () => {
      if (this.#readers.get(node) !== reader) return;
      reader.cancel?.();
      this.#readers.delete(node);
      this.#tell(node);
    };
  }

  /** Returns all images that the node has to pull now. The result contains credentials and is for the wire only. */
  requestsFor(node: string): ImagePrefetches {
    const { clock, credentialsOf, answerMs = ANSWER_LIMIT_MS } = this.#options;
    const wishes = [...(this.#byNode.get(node) ?? [])].flatMap((key) => this.#wishes.get(key) ?? []);
    const reader = this.#readers.get(node);
    if (reader !== undefined && wishes.length > 0) {
      reader.cancel ??= clock.schedule(answerMs, () => {
        // After a hold-up of the process its answer may lie unread in the socket, which is read before the next timer.
        reader.cancel = clock.schedule(UNREAD_MS, () => {
          reader.silent = true;
          this.#tell(node);
        });
      });
    }
    return { images: wishes.flatMap((wish) => onWire(wish, credentialsOf(wish.workload))) };
  }

  /** Tracks the requests that one session of the node has sent. */
  sessionOf(node: string): LastSent<ImagePrefetches> {
    const read = (): ImagePrefetches | undefined => {
      const requests = this.requestsFor(node);
      return requests.images.length === 0 ? undefined : requests;
    };
    const encode = (requests: ImagePrefetches) => ImagePrefetches.encode(requests).finish();
    return new LastSent({ read, nothing: { images: [] }, encode });
  }

  /** Records a node's report about all requested images. */
  take(node: string, images: readonly ImagePull[]): void {
    const reader = this.#readers.get(node);
    if (reader === undefined) return;
    // The node has the request. From now on, a missing answer means that the image is still being pulled.
    reader.cancel?.();
    reader.cancel = () => {};
    reader.silent = false;
    reader.answers.clear();
    for (const pull of images) reader.answers.set(pull.id, pull);
    this.#tell(node);
  }

  #unlist(node: string, key: string): void {
    const keys = this.#byNode.get(node);
    keys?.delete(key);
    if (keys?.size === 0) this.#byNode.delete(node);
  }

  #tell(node: string): void {
    for (const key of this.#byNode.get(node) ?? []) for (const listener of this.#listeners) listener(key);
  }
}

function onWire(wish: Wish, registryCredentials: RegistryCredential[]): ImagePrefetch[] {
  const { namespace, template } = wish.workload;
  return imagesOf(template).map(({ image, pullPolicy }, index) => {
    return { id: idOf(wish, index), namespace, image, pullPolicy, registryCredentials };
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
