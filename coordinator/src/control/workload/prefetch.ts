import type { Workload } from "../../model/workload.ts";

/** A node's progress with the images of one template. */
export type ImagesOnNode =
  /** The node has no request for the images. */
  | { readonly type: "unasked" }
  /** The node has the request and has yet to answer, or it is pulling. `message` describes its progress, or is empty. */
  | { readonly type: "pulling"; readonly message: string }
  | { readonly type: "present" }
  /**
   * The pull failed and is retried. `reason` is one of a pod's: "ImagePullBackOff", "ErrImageNotFound", "ErrImageDenied",
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
   * Replaces the requests for this workload (`namespace/kind/name`). Undefined removes them. Repeating a request does nothing.
   */
  want(workloadKey: string, wish: PrefetchRequest | undefined): void;
  /** Returns the state of the images of the template with this hash. The workload is evaluated again when it changes. */
  imagesOn(workloadKey: string, templateHash: string, node: string): ImagesOnNode;
}
