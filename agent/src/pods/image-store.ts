import type { Clock } from "../clock.ts";
import { type ContainerRuntime, RuntimeError } from "../runtime/runtime.ts";
import { type BackOffLimits, backOffMs } from "./back-off.ts";
import type { ImageFailure, ImageState, PullPolicy } from "./pod.ts";

export interface ImageStoreOptions {
  readonly runtime: Pick<ContainerRuntime, "hasImage" | "pull">;
  readonly clock: Clock;
  readonly backOff: BackOffLimits;
  readonly signal: AbortSignal;
  /** What is known of the image changed: a pull began, or a fetch has ended, well or not. */
  readonly onChange: (reference: string) => void;
}

interface Entry {
  /** In the local store as far as is known; an image removed behind our back shows when a start fails. */
  present: boolean;
  pulledAtMs?: number;
  fetching: boolean;
  pulling: boolean;
  failures: number;
  failure?: { readonly reason: ImageFailure; readonly message: string; readonly retryAtMs: number };
}

// Replicas that start together share one pull of a moving tag.
const PULL_FRESH_MS = 30_000;
// References known at once. Far above what a host runs; the oldest idle one is forgotten.
const ENTRIES_MAX = 2_000;

/**
 * What is known of images: each reference is looked up once and pulled once, whoever wants it.
 * Fetching goes on behind the pods' backs.
 */
export class ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: ImageStoreOptions) {
    this.#options = options;
  }

  /** For a container that has wanted the image since `sinceMs`. */
  state(reference: string, policy: PullPolicy, sinceMs: number): ImageState {
    const entry = this.#entries.get(reference);
    if (entry === undefined) return { kind: "unknown" };
    const satisfied =
      policy === "Always"
        ? (entry.pulledAtMs ?? Number.NEGATIVE_INFINITY) >= sinceMs - PULL_FRESH_MS
        : entry.present;
    if (satisfied) return { kind: "present" };
    if (entry.fetching) return { kind: "fetching", pulling: entry.pulling };
    if (entry.failure === undefined) return { kind: "unknown" };
    return { kind: "failed", ...entry.failure };
  }

  /** Begins to fetch unless that is going on. */
  fetch(reference: string, policy: PullPolicy): void {
    const entry = this.#entry(reference);
    if (entry.fetching) return;
    entry.fetching = true;
    void this.#fetch(reference, policy, entry);
  }

  /** A container runs from it, so it is there. */
  seen(reference: string): void {
    this.#entry(reference).present = true;
  }

  /** It was there and no longer is. */
  forget(reference: string): void {
    this.#entries.delete(reference);
  }

  async #fetch(reference: string, policy: PullPolicy, entry: Entry): Promise<void> {
    const { runtime, clock, backOff, signal, onChange } = this.#options;
    try {
      if (policy !== "Always") entry.present = await runtime.hasImage(reference, signal);
      if (policy === "Never" && !entry.present) {
        throw new RuntimeError(
          "IMAGE_NOT_FOUND",
          "the image is not on this host and its pull policy is Never",
          {
            retryable: true,
          },
        );
      }
      if (policy === "Always" || !entry.present) {
        entry.pulling = true;
        onChange(reference);
        await runtime.pull(reference, signal);
        entry.present = true;
        entry.pulledAtMs = clock.nowMs();
      }
      entry.failures = 0;
      delete entry.failure;
    } catch (cause) {
      entry.failures += 1;
      const message = cause instanceof Error ? cause.message : String(cause);
      entry.failure = {
        reason: reasonOf(cause),
        message,
        retryAtMs: clock.nowMs() + backOffMs(entry.failures, backOff),
      };
    }
    entry.fetching = false;
    entry.pulling = false;
    onChange(reference);
  }

  #entry(reference: string): Entry {
    const known = this.#entries.get(reference);
    if (known !== undefined) return known;
    if (this.#entries.size >= ENTRIES_MAX) this.#forgetOldest();
    const made: Entry = { present: false, fetching: false, pulling: false, failures: 0 };
    this.#entries.set(reference, made);
    return made;
  }

  #forgetOldest(): void {
    for (const [reference, entry] of this.#entries) {
      if (entry.fetching) continue;
      this.#entries.delete(reference);
      return;
    }
  }
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
