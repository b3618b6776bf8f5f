import type { ParsedNode } from "yaml";
import type { ManifestDocument } from "./document.ts";

/** A node of a manifest, and the document that contains it. */
export interface Origin {
  readonly document: ManifestDocument;
  readonly node: ParsedNode;
  /** The path from the root of the document to the node. */
  readonly path: string;
  /**
   * Whether the node was converted from another notation. Paths of a manifest's fields can't be
   * followed into such a node.
   */
  readonly isConverted?: boolean;
}

/** The source positions of the parts of one bundle. */
export interface BundleOrigins {
  /** The document that sets namespace, labels and apply id; undefined if none does. */
  readonly header: Origin | undefined;
  /** The origins of the bundle's resources, in order. */
  readonly resources: readonly Origin[];
}
