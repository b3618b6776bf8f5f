/** A cause of an object's state. */
export interface Cause {
  /** One word in CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** Lines of output, nodes with the reasons that exclude them, or the pods concerned. */
  readonly details: readonly string[];
  /** The advice. Empty if waiting is enough. */
  readonly advice: string;
}

export interface Explained {
  /** One line: how it is. */
  readonly summary: string;
  /** Whether the object is as it should be. */
  readonly healthy: boolean;
  /** The most important first. */
  readonly causes: readonly Cause[];
}

/** The limit of details of one kind; further ones are counted. */
const MAX_DETAILS = 20;

export function cause(reason: string, message: string, advice = "", details: readonly string[] = []): Cause {
  const more = details.length - MAX_DETAILS;
  const shown = more > 0 ? [...details.slice(0, MAX_DETAILS), `and ${more} more`] : details;
  return { reason, message, advice, details: shown };
}
