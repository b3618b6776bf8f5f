import type { NodeSpec } from "../types.ts";

/** A yes or no for each node that depends on its specification alone. */
export interface NodeMask {
  readonly key: string;
  readonly test: (node: NodeSpec) => boolean;
  bits: Uint8Array;
}

/** A number for each node that depends on its specification alone. */
export interface NodeScore {
  readonly score: (node: NodeSpec) => number;
  values: Int32Array;
  /** The number of nodes whose value is not 0. */
  nonZero: number;
}
