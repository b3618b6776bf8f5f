import type { Workload } from "../../model/workload.ts";

/** The progress of a node in pulling the images of one template. */
export type ImagesOnNode =
  /** The node has no request for the images. */
  | { readonly type: "unasked" }
  /**
   * The node has the request and has not answered yet, or it is pulling. `message` describes its progress, and may be
   * empty.
   */
  | { readonly type: "pulling"; readonly message: string }
  | { readonly type: "present" }
  /**
   * The pull has failed and is retried. `reason` is one of "ImagePullBackOff", "ErrImageNotFound", "ErrImageDenied" and
   * "ErrImageInvalid".
   */
  | { readonly type: "failed"; readonly reason: string; readonly image: string; readonly message: string }
  /** The node has the request and is connected, but doesn't answer. Rollouts don't wait for it. */
  | { readonly type: "unanswered" };

export interface PrefetchRequest {
  /** The workload whose pods will need the images. */
  readonly workload: Workload;
  readonly nodes: readonly string[];
}

/** Requests images from nodes before pods need them. Requests are in memory only, and are repeated after a restart. */
export interface Prefetcher {
  /**
   * Replaces the requests of this workload (`namespace/kind/name`). Undefined removes them. Repeating a request has no
   * effect.
   */
  setRequest(workloadKey: string, request: PrefetchRequest | undefined): void;
  /**
   * Returns the progress of the node with the images of the template with this hash. The workload is evaluated again when
   * it changes.
   */
  imagesOn(workloadKey: string, templateHash: string, node: string): ImagesOnNode;
}
