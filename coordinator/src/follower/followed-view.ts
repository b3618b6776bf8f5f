import type { Directory } from "../destination/directory.ts";
import type { ClusterView } from "../state/cluster-view.ts";

/** The cluster view of a follower. */
export interface FollowedView {
  readonly state: ClusterView;
  readonly directory: Directory;
  /**
   * Whether another coordinator has led in the meantime. The store is then the one that the nodes
   * know.
   */
  readonly isProven: boolean;
}
