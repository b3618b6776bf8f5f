import type {
  ImagePrefetch,
  ImagePrefetches,
  ImagePull,
  ImagePulls,
} from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import { defaultPullPolicy } from "../pods/image-reference.ts";
import type { ImageStore, ImageUser } from "../pods/image-store.ts";
import type { ImageState, PullPolicy } from "../pods/pod.ts";

export interface ImagePrefetcherOptions {
  readonly clock: Clock;
  readonly images: Pick<ImageStore, "state" | "fetch">;
}

/** Receives the progress of images. */
export interface PullSink {
  send(message: { readonly $case: "imagePulls"; readonly value: ImagePulls }): Promise<void>;
}

interface PullRequest {
  readonly asked: ImagePrefetch;
  readonly policy: PullPolicy;
  readonly user: ImageUser;
  /** The time of the request. A moving tag whose last pull is older is pulled again. */
  readonly sinceMs: number;
}

// Several for each workload whose rollout is in progress.
const REQUESTS_MAX = 500;
// The message is repeated with each change, so it is kept short.
const MESSAGE_MAX = 300;

/**
 * Pulls images at the coordinator's request, before pods need them, and reports progress. A request lasts as long as
 * the connection. A pull in progress continues without it.
 */
export class ImagePrefetcher {
  readonly #options: ImagePrefetcherOptions;
  #requests: readonly PullRequest[] = [];
  #sink: PullSink | undefined;
  #lastReport = "";
  #evaluating = false;
  #cancel: (() => void) | undefined;

  constructor(options: ImagePrefetcherOptions) {
    this.#options = options;
  }

  /** Replaces earlier requests, whichever connection they came from. */
  ask({ images }: ImagePrefetches, sink: PullSink): void {
    const nowMs = this.#options.clock.monotonicMs();
    const before = new Map(this.#requests.map((request) => [request.asked.id, request]));
    this.#requests = images.slice(0, REQUESTS_MAX).map((asked) => {
      const known = before.get(asked.id);
      const isSame = known?.asked.image === asked.image && known.asked.pullPolicy === asked.pullPolicy;
      return requestOf(asked, isSame ? known.sinceMs : nowMs);
    });
    this.#sink = sink;
    // Every request gets a report, even if nothing has changed.
    this.#lastReport = "";
    this.#evaluate();
  }

  /** Drops the requests of a closed connection. The next one sends new requests. */
  ended(sink: PullSink): void {
    if (this.#sink === sink) this.close();
  }

  /** Called by the image store when the state of an image has changed. */
  changed(image: string): void {
    if (!this.#requests.some(({ asked }) => asked.image === image) || this.#evaluating) return;
    this.#evaluating = true;
    // The store is still changing its state at this point.
    queueMicrotask(() => {
      this.#evaluating = false;
      this.#evaluate();
    });
  }

  /** Returns the images currently requested. */
  desired(): readonly string[] {
    return this.#requests.map(({ asked }) => asked.image);
  }

  close(): void {
    this.#requests = [];
    this.#sink = undefined;
    this.#evaluate();
  }

  #evaluate(): void {
    const { clock, images } = this.#options;
    this.#cancel?.();
    const states = this.#requests.map((request) => ({ request, state: stateOf(images, request) }));
    let retryMs = Number.POSITIVE_INFINITY;
    for (const { request, state } of states) {
      const isDue = state.type === "failed" && state.notBeforeMs <= clock.monotonicMs();
      if (state.type === "unknown" || isDue) images.fetch(request.asked.image, request.policy, request.user);
      else if (state.type === "failed") retryMs = Math.min(retryMs, state.notBeforeMs - clock.monotonicMs());
    }
    this.#cancel = Number.isFinite(retryMs) ? clock.schedule(retryMs, () => this.#evaluate()) : undefined;
    if (states.length > 0) this.#report(states.map(({ request, state }) => pullOf(request.asked.id, state)));
  }

  #report(images: ImagePull[]): void {
    const text = JSON.stringify(images);
    if (text === this.#lastReport) return;
    this.#lastReport = text;
    void this.#sink?.send({ $case: "imagePulls", value: { images } });
  }
}

function requestOf(asked: ImagePrefetch, sinceMs: number): PullRequest {
  const registryCredentials = asked.registryCredentials.map(({ server, username, password }) => ({
    ...{ server, username, password },
  }));
  const objects = { secrets: [], configMaps: [], envVersions: {}, registryCredentials };
  return {
    asked,
    policy: policyOf(asked),
    user: { namespace: asked.namespace, objects },
    sinceMs,
  };
}

function policyOf({ image, pullPolicy }: ImagePrefetch): PullPolicy {
  switch (pullPolicy) {
    case "Always":
    case "IfNotPresent":
    case "Never":
      return pullPolicy;
    default:
      return defaultPullPolicy(image);
  }
}

function stateOf(
  images: ImagePrefetcherOptions["images"],
  { asked, policy, sinceMs, user }: PullRequest,
): ImageState {
  return images.state(asked.image, policy, sinceMs, user);
}

function pullOf(id: string, state: ImageState): ImagePull {
  switch (state.type) {
    case "present":
      return { id, present: true, failure: "", message: "" };
    case "failed":
      return { id, present: false, failure: state.reason, message: state.message.slice(0, MESSAGE_MAX) };
    case "unknown":
      return { id, present: false, failure: "", message: "" };
    case "fetching":
      return { id, present: false, failure: "", message: state.progress ?? "" };
    default:
      return state satisfies never;
  }
}
