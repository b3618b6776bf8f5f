/** What is only known on the host, once the pod has its network. */
export interface PodFacts {
  readonly nodeName: string;
  readonly podIp: string;
  readonly hostIp: string;
  /** For limits that aren't set: what the node has to give. */
  readonly allocatable: Readonly<Record<string, string>>;
}
