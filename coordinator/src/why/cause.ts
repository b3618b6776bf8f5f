/** A cause of an object's state. */
export interface Cause {
  /** One word in CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** Lines of output, nodes with what keeps the pod off them, pods that it is true of. */
  readonly details: readonly string[];
  /** The advice. Empty if waiting is enough. */
  readonly advice: string;
}

export interface Explained {
  /** One line: how it is. */
  readonly summary: string;
  /** As it should be. */
  readonly healthy: boolean;
  /** The most important first. */
  readonly causes: readonly Cause[];
}

/** More of one kind are counted. */
const maxDetails = 20;

export function cause(reason: string, message: string, advice = "", details: readonly string[] = []): Cause {
  const more = details.length - maxDetails;
  const shown = more > 0 ? [...details.slice(0, maxDetails), `and ${more} more`] : details;
  return { reason, message, advice, details: shown };
}
