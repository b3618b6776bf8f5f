/** Decides who may use a local image without a query to its registry. */
export interface ImageAccess {
  /** Returns false if the image was pulled with a login, and only for other namespaces. */
  isOpenTo(reference: string, namespace: string): boolean;
  pulled(reference: string, namespace: string, withLogin: boolean): void;
}

export const OPEN_TO_ALL: ImageAccess = { isOpenTo: () => true, pulled: () => undefined };
