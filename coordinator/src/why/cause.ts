/** A cause of an object's state. */
export interface Cause {
  /** The reason as one word in CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** Lines of output, nodes with the reasons that exclude them, or the affected pods. */
  readonly details: readonly string[];
  /** The advice; empty if waiting is enough. */
  readonly advice: string;
}

export interface Diagnosis {
  /** The state in one line. */
  readonly summary: string;
  /** Whether the object is in its desired state. */
  readonly healthy: boolean;
  /** The causes, the most important first. */
  readonly causes: readonly Cause[];
}

/** The most details of one kind. Further ones are only counted. */
const MAX_DETAILS = 20;

export function cause(reason: string, message: string, advice = "", details: readonly string[] = []): Cause {
  const more = details.length - MAX_DETAILS;
  const shown = more > 0 ? [...details.slice(0, MAX_DETAILS), `and ${more} more`] : details;
  return { reason, message, advice, details: shown };
}
