import type { NodeSpec } from "../types.ts";

/** A boolean for each node that depends only on the node's specification. */
export interface NodeMask {
  readonly key: string;
  readonly test: (node: NodeSpec) => boolean;
  bits: Uint8Array;
}

/** A number for each node that depends only on the node's specification. */
export interface NodeScore {
  readonly score: (node: NodeSpec) => number;
  values: Int32Array;
  /** The number of nodes whose value is not 0. */
  nonZero: number;
}
