/** A dense number for a node, reused after the node is removed. */
export type NodeIndex = number;
