/** Makes valid messages of one type. */
export interface MessageSamples {
  /** Fields without which the message is invalid, by JSON name; a oneof by its own name. */
  readonly base: Readonly<Record<string, unknown>>;
  /** Keyed by the contract's name: valid values, the first not the default. Fields that hold messages have none. */
  readonly values: Readonly<Record<string, readonly unknown[]>>;
}

export type SampleTable = Readonly<Record<string, MessageSamples>>;
