/** A dense number for a node, reused after the node is gone. */
export type NodeIndex = number;
