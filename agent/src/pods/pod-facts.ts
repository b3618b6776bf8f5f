/** Facts that are known only on the host, once the pod has its network. */
export interface PodFacts {
  readonly nodeName: string;
  /** One for each family; the first is the one that it goes by. */
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
  /** For limits that aren't set: what the node has to give. */
  readonly allocatable: Readonly<Record<string, string>>;
}
