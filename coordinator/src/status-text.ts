/** The figures in the line that `systemctl status` shows. */
export interface StatusFigures {
  readonly nodes: number;
  readonly readyNodes: number;
  readonly pods: number;
  /** The reasons why the coordinator is not ready. */
  readonly reasons: readonly string[];
}

/** Returns the state of the fleet in one line. */
export function statusText({ nodes, readyNodes, pods, reasons }: StatusFigures): string {
  return [`${readyNodes} of ${nodes} nodes are Ready, ${pods} pods`, ...reasons].join("; ");
}
