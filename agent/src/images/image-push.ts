import { randomUUID } from "node:crypto";
import { KeyedMutex } from "@forage/common/keyed-mutex";
import { Semaphore } from "@forage/common/semaphore";
import { namedDigest, normalizeImage } from "../runtime/image-reference.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import type { ImageImport } from "./image-import.ts";
import { packLayout } from "./image-layout.ts";
import { missingLayers, type PushedImage, type PushedLayer, readPushedImage } from "./pushed-image.ts";

export interface ImagePushOptions {
  readonly importer: ImageImport;
  readonly runtime: Pick<ContainerRuntime, "hasImage" | "removeImage" | "imageStorage">;
  readonly records: PushRecords;
  /** Returns the free bytes of the file system with this directory. */
  readonly freeBytes: (directory: string) => Promise<number>;
  /** Called after an image was stored or removed. */
  readonly events: { stored(reference: string): void; removed(reference: string): void };
}

/** The agent's records of images. */
export interface PushRecords {
  /** Reports whether pods of the namespace may use the image. */
  isOpenTo(reference: string, namespace: string): boolean;
  /** Reports whether the image belongs to this namespace alone. */
  isOnlyOf(reference: string, namespace: string): boolean;
  /**
   * Records that a namespace may use an image that another node has sent, as if the namespace had pulled it with a
   * login.
   */
  pulled(reference: string, namespace: string, withLogin: boolean): void;
  /** Returns the layers of images that were pushed for the namespace. */
  layersOf(namespace: string): ReadonlySet<string>;
  /** Records a pushed image, also on disk. `namespace` undefined means all namespaces. */
  pushed(reference: string, namespace: string | undefined, layers: readonly string[]): Promise<void>;
}

/** An image as a client sends it. An empty namespace means all namespaces. */
export interface Push {
  readonly image: string;
  readonly namespace: string;
  readonly manifest: Uint8Array;
  readonly config: Uint8Array;
  /** Whether an existing image of this name is kept if the namespace may use it. */
  readonly keepPresent?: boolean;
  readonly indexes?: readonly Uint8Array[];
  /** Whether another node sends the image. Pods of the namespace may use the image there. */
  readonly fromNode?: boolean;
}

// Each change is a process that unpacks to the disk that containers use.
const CHANGES_MAX = 4;
// The ratio of unpacked to compressed size, at worst in practice.
const UNPACKED_FACTOR = 4;
const INCOMING = "forage.invalid/incoming";

/** Stores images that come from clients, and removes images. */
export class ImagePushes {
  readonly #options: ImagePushOptions;
  readonly #names = new KeyedMutex();
  readonly #places = new Semaphore(CHANGES_MAX);

  constructor(options: ImagePushOptions) {
    this.#options = options;
  }

  /**
   * Stores an image. Errors are for the client. `ask` is called once, with the layers that `content` must then contain.
   */
  async push(
    { image: name, namespace, manifest, config, indexes, keepPresent = false, fromNode = false }: Push,
    content: AsyncIterable<Buffer>,
    ask: (missing: readonly string[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const reference = normalizeImage(name);
    const image = readPushedImage(reference, manifest, config, indexes);
    // Content named by a digest is the same everywhere. Content named by a tag may differ.
    const isShared = fromNode && namespace !== "" && namedDigest(reference) !== undefined;
    const outcome = await this.#inTurn(reference, signal, async () => {
      if (keepPresent && (await this.#isUsable(reference, namespace, signal))) {
        await ask([]);
        return "kept";
      }
      if (isShared) {
        await this.#share(reference, namespace, { image, content, ask }, signal);
        return "stored";
      }
      await this.#assertMayChange(reference, namespace, signal);
      const missing = missingLayers(image, await this.#present(namespace, signal));
      await this.#assertRoom(missing, signal);
      await ask(missing.map(({ digest }) => digest));
      const record = (recorded: string | undefined): Promise<void> =>
        this.#options.records.pushed(
          reference,
          recorded,
          image.layers.map(({ digest }) => digest),
        );
      // Recorded before the import, because an image without a record is open to every namespace.
      const before = namespace === "" ? async () => undefined : () => record(namespace);
      await this.#store(reference, { image, missing, content }, before, signal);
      if (namespace === "") await record(undefined);
      return "stored";
    });
    if (outcome === "stored") this.#options.events.stored(reference);
  }

  /** Removes a name. Returns `absent` if there is no such image. Throws while a container uses the image. */
  async remove(name: string, namespace: string, signal: AbortSignal): Promise<"removed" | "absent"> {
    const { runtime, events } = this.#options;
    const reference = normalizeImage(name);
    return this.#inTurn(reference, signal, async () => {
      await this.#assertMayChange(reference, namespace, signal);
      const outcome = await runtime.removeImage(reference, signal);
      if (outcome === "in-use")
        throw new Error(
          `image ${reference} is used by containers on this node: delete their workloads first`,
        );
      if (outcome === "removed") events.removed(reference);
      return outcome;
    });
  }

  /**
   * Records that the namespace may use all layers of the image, as on the other node. Present layers are then skipped.
   */
  async #share(
    reference: string,
    namespace: string,
    sent: {
      readonly image: PushedImage;
      readonly content: AsyncIterable<Buffer>;
      readonly ask: (missing: readonly string[]) => Promise<void>;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const { runtime, records, importer } = this.#options;
    const { image, content, ask } = sent;
    const record = async (): Promise<void> => records.pulled(reference, namespace, true);
    if (await runtime.hasImage(reference, signal)) {
      await ask([]);
      return record();
    }
    const missing = missingLayers(image, await importer.contents(signal));
    await this.#assertRoom(missing, signal);
    await ask(missing.map(({ digest }) => digest));
    await this.#store(reference, { image, missing, content }, record, signal);
  }

  /**
   * Runs changes of the same name one after the other, and few changes at a time. The number of waiting changes is
   * limited by the host's limit on sessions.
   */
  #inTurn<Result>(reference: string, signal: AbortSignal, change: () => Promise<Result>): Promise<Result> {
    return this.#names.run(reference, () => this.#places.run(signal, change));
  }

  async #isUsable(reference: string, namespace: string, signal: AbortSignal): Promise<boolean> {
    const { runtime, records } = this.#options;
    return records.isOpenTo(reference, namespace) && (await runtime.hasImage(reference, signal));
  }

  /** Rejects if other namespaces may use the image, because a namespace must not replace or remove what others run. */
  async #assertMayChange(reference: string, namespace: string, signal: AbortSignal): Promise<void> {
    const { runtime, records } = this.#options;
    if (namespace === "" || records.isOnlyOf(reference, namespace)) return;
    if (!(await runtime.hasImage(reference, signal))) return;
    throw new Error(
      `image ${reference} is on this node for other namespaces too: choose another name, or use --all-namespaces with a token for all`,
    );
  }

  /**
   * Returns the present layers that the client need not send. If a namespace could skip any layer, it would get access
   * to others' images by their digests.
   */
  async #present(namespace: string, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const { importer, records } = this.#options;
    const stored = await importer.contents(signal);
    if (namespace === "") return stored;
    return new Set([...records.layersOf(namespace)].filter((digest) => stored.has(digest)));
  }

  async #assertRoom(missing: readonly PushedLayer[], signal: AbortSignal): Promise<void> {
    const { runtime, freeBytes } = this.#options;
    const directory = await runtime.imageStorage(signal);
    if (directory === undefined) return;
    const free = await freeBytes(directory);
    const needed = UNPACKED_FACTOR * missing.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    if (needed > free)
      throw new Error(
        `the node's disk has ${free} bytes left; the image needs up to ${needed} with its unpacked layers`,
      );
  }

  /**
   * Imports the image under a temporary name until it is complete, so that a failed push leaves the existing image of
   * this name unchanged.
   */
  async #store(
    reference: string,
    sent: {
      readonly image: PushedImage;
      readonly missing: readonly PushedLayer[];
      readonly content: AsyncIterable<Buffer>;
    },
    beforeNamed: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { importer } = this.#options;
    const { image, missing, content } = sent;
    const incoming = `${INCOMING}:${randomUUID()}`;
    try {
      await importer.load(packLayout(incoming, image, missing, content), signal);
      await beforeNamed();
      await importer.tag(incoming, reference, signal);
    } finally {
      await importer.untag(incoming, AbortSignal.timeout(CLEANUP_MS)).catch(() => undefined);
    }
  }
}

// The client may have disconnected by then.
const CLEANUP_MS = 30_000;
