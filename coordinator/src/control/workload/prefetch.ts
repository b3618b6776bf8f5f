import type { Workload } from "../../model/workload.ts";

/** Where a node is with the images of one template. */
export type ImagesOnNode =
  /** Nobody asked for them. */
  | { readonly type: "unasked" }
  /** It was asked and has yet to answer, or it is pulling: `message` tells how far, or is empty. */
  | { readonly type: "pulling"; readonly message: string }
  | { readonly type: "present" }
  /** It goes on trying. `reason` as pods have it: "ImagePullBackOff", "ErrImageNotFound", "ErrImageDenied", "ErrImageInvalid". */
  | { readonly type: "failed"; readonly reason: string; readonly image: string; readonly message: string }
  /** It was asked and says nothing, though it is connected: nobody should wait for its answer. */
  | { readonly type: "unanswered" };

export interface PrefetchWish {
  /** Whose pods will need the images. */
  readonly workload: Workload;
  readonly nodes: readonly string[];
}

/** Has nodes pull images before pods need them. In memory only: who still wants something after a restart asks again. */
export interface Prefetcher {
  /** Takes the place of what was asked for this workload (`namespace/kind/name`); undefined: nothing more. Asking again for the same does nothing. */
  want(workloadKey: string, wish: PrefetchWish | undefined): void;
  /** Of the template with this hash. Whoever asked is woken when it changes. */
  imagesOn(workloadKey: string, templateHash: string, node: string): ImagesOnNode;
}
