/** An agent that runs in a network namespace, as other agents there see it. */
export interface RunningAgent {
  readonly instance: string;
  readonly nodeName: string;
  readonly dataDir: string;
  readonly pid: number;
  /** Pins of the authorities that the agent trusts. Empty before it has joined a cluster. */
  readonly authorities: readonly string[];
}

/**
 * Returns the reason why an agent can't run beside the others in its network namespace, with a remedy. Undefined if it
 * can. Agents of the same cluster translate the same virtual IPs and node ports, so each would intercept the other's
 * connections.
 */
export function conflictOf(own: RunningAgent, others: readonly RunningAgent[]): string | undefined {
  const other = others.find((it) => it.authorities.some((pin) => own.authorities.includes(pin)));
  if (other === undefined) return undefined;
  return `${describeAgent(other)} belongs to the same cluster and uses the same network namespace, so each would break the services of the other: stop one of them, or give it a network namespace of its own`;
}

/** Returns the reason why the instance's name can't be used. The other agent's record may be missing. */
export function describeUsedInstance(instance: string, other: RunningAgent | undefined): string {
  const holder = other === undefined ? "another agent" : describeAgent(other);
  return `${holder} uses the instance "${instance}" in this network namespace already: set another \`instance\`, or stop that agent`;
}

function describeAgent({ instance, nodeName, dataDir, pid }: RunningAgent): string {
  return `the agent of node ${nodeName} (instance ${instance}, process ${pid}, data directory ${dataDir})`;
}
