import type { Directory } from "../destination/directory.ts";
import type { ClusterView } from "../state/cluster-view.ts";

/** A view that has followed the store while another coordinator led. */
export interface FollowedView {
  readonly state: ClusterView;
  readonly directory: Directory;
  /** Whether a coordinator has decided meanwhile. The store is then the one that the nodes know. */
  readonly isProven: boolean;
}
