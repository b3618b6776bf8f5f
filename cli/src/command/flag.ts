/**
 * A flag. A `switch` has no value, `text` has one value, and `list` collects a value each time it
 * is given.
 */
export interface Flag {
  readonly type: "switch" | "text" | "list";
  readonly short?: string;
  /** The placeholder of the value in the help, such as `FILE`. */
  readonly hint?: string;
  readonly choices?: readonly string[];
  readonly help: string;
}

/** Flags by long name, without dashes. */
export type Flags = Readonly<Record<string, Flag>>;

export type FlagValues<F extends Flags> = {
  readonly [Name in keyof F]: F[Name]["type"] extends "switch"
    ? boolean
    : F[Name]["type"] extends "list"
      ? readonly string[]
      : string | undefined;
};
