/** Valid sample values for messages of one type. */
export interface MessageSamples {
  /** The required fields, by JSON name; a oneof by its own name. */
  readonly base: Readonly<Record<string, unknown>>;
  /**
   * Valid values by the contract's field name; the first one is not the default. Fields with
   * messages have none.
   */
  readonly values: Readonly<Record<string, readonly unknown[]>>;
}

export type SampleTable = Readonly<Record<string, MessageSamples>>;
