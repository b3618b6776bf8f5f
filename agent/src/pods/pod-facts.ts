/** Facts that are known only on the host, once the pod has its network. */
export interface PodFacts {
  readonly nodeName: string;
  /** The pod's addresses: one for each family, the preferred one first. */
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
  /** The node's allocatable resources, which replace limits that aren't set. */
  readonly allocatable: Readonly<Record<string, string>>;
}
