import { type BackOff, backOffMs } from "@forage/common/back-off";
import { messageOf } from "@forage/common/message-of";
import type { Clock } from "../clock.ts";
import { fullForm, namedDigest, registryName, registryOf } from "../runtime/image-reference.ts";
import { type ContainerRuntime, type PullState, RuntimeError } from "../runtime/runtime.ts";
import { describePull, pullPercent } from "./describe-pull.ts";
import { type ImageAccess, OPEN_TO_ALL } from "./image-access.ts";
import type { ImageFailure, ImageState, Pod, PullPolicy } from "./pod.ts";

export interface ImageStoreOptions {
  readonly runtime: Pick<ContainerRuntime, "hasImage" | "pull">;
  readonly clock: Clock;
  readonly backOff: BackOff;
  readonly signal: AbortSignal;
  /** Called when the state of an image has changed: a pull has started, progressed or ended. */
  readonly onChange: (reference: string) => void;
  /** Called when a pull has succeeded. */
  readonly onPulled?: () => void;
  /** Default: every pod may use the images that are on the host. */
  readonly access?: ImageAccess;
  /** Gets images from other nodes. Default: images come from registries only. */
  readonly otherNodes?: OtherNodes | undefined;
}

/** Gets images from other nodes, with the rights of a pod's namespace. */
export interface OtherNodes {
  /** Whether other nodes are tried before the registry. */
  readonly first: boolean;
  /** Whether other nodes also send images that are named by a tag. */
  readonly tags: boolean;
  /** Stores the image on this host. Rejects if no other node sends it. */
  fetch(
    reference: string,
    namespace: string,
    onProgress: (text: string) => void,
    signal: AbortSignal,
  ): Promise<void>;
}

/**
 * The pod that uses an image. Its logins are used for pulls, and an image pulled with a login is usable in the pod's
 * namespace only.
 */
export type ImageUser = Pick<Pod, "namespace" | "objects">;

interface Entry {
  readonly reference: string;
  /**
   * Whether the image was in the local store at the last check. If it has been removed since, the next start fails and
   * corrects this.
   */
  present: boolean;
  pulledAtMs?: number;
  fetching: boolean;
  pulling: boolean;
  /** The newest progress of the pull, and the last reported one. */
  newestProgress?: string;
  progress?: string;
  newestPercent?: number | undefined;
  percent?: number | undefined;
  failures: number;
  failure?: Omit<Extract<ImageState, { type: "failed" }>, "type">;
}

// Replicas that start within this time share one pull of a moving tag.
const PULL_FRESH_MS = 30_000;
// Each report makes the waiting pods decide again and send their statuses. Progress of all pulls is reported together,
// because a pod may wait for several.
const PROGRESS_INTERVAL_MS = 2_000;
// The largest number of references in memory, far more than a host runs. The oldest idle entry is dropped.
const ENTRIES_MAX = 2_000;
const NOBODY: ImageUser = { namespace: "" };

/**
 * Tracks the state of images. All pods share one look-up and one pull of each reference; pods with logins of their own
 * share them within their namespace. Pulls run in the background.
 */
export class ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #access: ImageAccess;
  readonly #entries = new Map<string, Entry>();
  #progressSentMs = 0;

  constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#access = options.access ?? OPEN_TO_ALL;
  }

  /** Returns the image's state for a container that has needed it since `sinceMs`. */
  state(reference: string, policy: PullPolicy, sinceMs: number, user = NOBODY): ImageState {
    const entry = this.#entries.get(keyOf(reference, user));
    if (entry === undefined) return { type: "unknown" };
    const satisfied =
      policy === "Always"
        ? (entry.pulledAtMs ?? Number.NEGATIVE_INFINITY) >= sinceMs - PULL_FRESH_MS
        : entry.present;
    if (satisfied && this.#access.isOpenTo(reference, user.namespace)) return { type: "present" };
    if (entry.fetching) {
      const { pulling, progress, percent } = entry;
      return {
        type: "fetching",
        pulling,
        ...(progress !== undefined && { progress }),
        ...(percent !== undefined && { percent }),
      };
    }
    if (entry.failure === undefined) return { type: "unknown" };
    return { type: "failed", ...entry.failure };
  }

  /** Starts to fetch the image unless a fetch is in progress. */
  fetch(reference: string, policy: PullPolicy, user = NOBODY): void {
    const entry = this.#entry(reference, user);
    if (entry.fetching) return;
    entry.fetching = true;
    void this.#fetch(policy, entry, user);
  }

  /** Records that a container runs from the image, so the image is present. */
  seen(reference: string, user = NOBODY): void {
    this.#entry(reference, user).present = true;
  }

  /** Records that the image was stored by other means than a pull. Waiting pods check it again. */
  stored(reference: string): void {
    const full = fullForm(reference);
    for (const entry of this.#entries.values()) {
      if (fullForm(entry.reference) !== full) continue;
      entry.present = true;
      entry.failures = 0;
      delete entry.failure;
      this.#options.onChange(entry.reference);
    }
  }

  /** Records that the image was removed from the local store, under all of its names. */
  forget(reference: string): void {
    const gone = fullForm(reference);
    for (const [key, entry] of this.#entries)
      if (fullForm(entry.reference) === gone) this.#entries.delete(key);
  }

  async #fetch(policy: PullPolicy, entry: Entry, user: ImageUser): Promise<void> {
    const { clock, backOff, onChange } = this.#options;
    try {
      if (await this.#needsPull(policy, entry, user)) await this.#pull(policy, entry, user);
      entry.failures = 0;
      delete entry.failure;
    } catch (cause) {
      entry.failures += 1;
      const message = messageOf(cause);
      const waitMs = backOffMs(entry.failures, backOff);
      entry.failure = {
        reason: reasonOf(cause),
        message,
        retryAtMs: clock.nowMs() + waitMs,
        notBeforeMs: clock.monotonicMs() + waitMs,
      };
    }
    entry.fetching = false;
    entry.pulling = false;
    delete entry.newestProgress;
    delete entry.progress;
    delete entry.newestPercent;
    delete entry.percent;
    onChange(entry.reference);
  }

  async #needsPull(policy: PullPolicy, entry: Entry, user: ImageUser): Promise<boolean> {
    const { runtime, signal } = this.#options;
    const { reference } = entry;
    if (policy === "Always") return true;
    entry.present = await runtime.hasImage(reference, signal);
    const isOpen = this.#access.isOpenTo(reference, user.namespace);
    if (policy === "IfNotPresent") return !entry.present || !isOpen;
    if (!entry.present)
      throw neverPulled("IMAGE_NOT_FOUND", "the image is not on this host and its pull policy is Never");
    if (!isOpen)
      throw neverPulled(
        "IMAGE_DENIED",
        "the image is on this host for other namespaces only, which pulled it with a login; its pull policy is Never",
      );
    return false;
  }

  async #pull(policy: PullPolicy, entry: Entry, user: ImageUser): Promise<void> {
    const { runtime, clock, signal, onChange } = this.#options;
    const { reference } = entry;
    const isFirst = [...this.#entries.values()].every((it) => !it.pulling);
    if (isFirst) this.#progressSentMs = clock.monotonicMs();
    entry.pulling = true;
    onChange(reference);
    const onProgress = (state: PullState) => {
      entry.newestProgress = describePull(state);
      entry.newestPercent = pullPercent(state);
      this.#reportProgress();
    };
    const { otherNodes } = this.#options;
    const canAsk = otherNodes !== undefined && sends(otherNodes, reference, policy);
    if (canAsk && otherNodes.first && (await this.#fromNode(otherNodes, entry, user)) === undefined) return;
    try {
      await runtime.pull(reference, signal, {
        credentials: user.objects?.registryCredentials ?? [],
        onProgress,
      });
    } catch (error) {
      if (!canAsk || otherNodes.first || !isUnreachable(error)) throw error;
      const problem = await this.#fromNode(otherNodes, entry, user);
      if (problem === undefined) return;
      const message = `${messageOf(error)}; no other node sends it: ${problem}`;
      throw new RuntimeError("REGISTRY_UNAVAILABLE", message, { retryable: true, cause: error });
    }
    this.#access.pulled(reference, user.namespace, hasLogin(reference, user));
    entry.present = true;
    entry.pulledAtMs = clock.monotonicMs();
    this.#options.onPulled?.();
  }

  /** Gets the image from another node and records its use. Returns the reason if no node sends it. */
  async #fromNode(otherNodes: OtherNodes, entry: Entry, user: ImageUser): Promise<string | undefined> {
    const { clock, signal } = this.#options;
    const onProgress = (text: string) => {
      entry.newestProgress = text;
      this.#reportProgress();
    };
    try {
      await otherNodes.fetch(entry.reference, user.namespace, onProgress, signal);
    } catch (error) {
      return messageOf(error);
    }
    entry.present = true;
    entry.pulledAtMs = clock.monotonicMs();
    this.#options.onPulled?.();
    return undefined;
  }

  #reportProgress(): void {
    const { clock, onChange } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#progressSentMs < PROGRESS_INTERVAL_MS) return;
    for (const entry of this.#entries.values()) {
      const { reference, newestProgress } = entry;
      if (newestProgress === undefined || newestProgress === entry.progress) continue;
      this.#progressSentMs = nowMs;
      entry.progress = newestProgress;
      entry.percent = entry.newestPercent;
      onChange(reference);
    }
  }

  #entry(reference: string, user: ImageUser): Entry {
    const key = keyOf(reference, user);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= ENTRIES_MAX) this.#forgetOldest();
    const made: Entry = { reference, present: false, fetching: false, pulling: false, failures: 0 };
    this.#entries.set(key, made);
    return made;
  }

  #forgetOldest(): void {
    for (const [key, entry] of this.#entries) {
      if (entry.fetching) continue;
      this.#entries.delete(key);
      return;
    }
  }
}

/**
 * Returns the key under which pods share an image's state. Pods without credentials for the registry share one entry,
 * and wrong credentials of one namespace don't affect another.
 */
function keyOf(reference: string, user: ImageUser): string {
  return hasLogin(reference, user) ? `${user.namespace} ${reference}` : reference;
}

/** Reports whether the user has a login for the image's registry. */
export function hasLogin(reference: string, { objects }: ImageUser): boolean {
  const logins = objects?.registryCredentials ?? [];
  if (logins.length === 0) return false;
  try {
    const registry = registryOf(reference);
    return logins.some((it) => registryName(it.server) === registry);
  } catch {
    return false;
  }
}

/** Reports whether other nodes may send the image. With `Always`, only the registry can resolve a tag. */
function sends({ tags }: OtherNodes, reference: string, policy: PullPolicy): boolean {
  return namedDigest(fullForm(reference)) !== undefined || (tags && policy !== "Always");
}

/**
 * Reports whether the registry is unreachable. If it answers that access is denied or the image is unknown, no other
 * node is tried.
 */
function isUnreachable(error: unknown): boolean {
  return error instanceof RuntimeError && /^(REGISTRY_UNAVAILABLE|TIMEOUT)$/.test(error.code);
}

function neverPulled(code: "IMAGE_NOT_FOUND" | "IMAGE_DENIED", message: string): RuntimeError {
  return new RuntimeError(code, message, { retryable: true });
}

function reasonOf(error: unknown): ImageFailure {
  switch (error instanceof RuntimeError ? error.code : undefined) {
    case "IMAGE_NOT_FOUND":
      return "ErrImageNotFound";
    case "IMAGE_DENIED":
      return "ErrImageDenied";
    case "IMAGE_INVALID":
      return "ErrImageInvalid";
    default:
      return "ImagePullBackOff";
  }
}
