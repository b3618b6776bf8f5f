/** `switch` is on or off, `text` takes a value, `list` takes one each time it is given. */
export interface Flag {
  readonly kind: "switch" | "text" | "list";
  readonly short?: string;
  /** The placeholder for the value in the help: `FILE`. */
  readonly hint?: string;
  readonly choices?: readonly string[];
  readonly help: string;
}

/** Keyed by long name, without dashes. */
export type Flags = Readonly<Record<string, Flag>>;

export type FlagValues<F extends Flags> = {
  readonly [Name in keyof F]: F[Name]["kind"] extends "switch"
    ? boolean
    : F[Name]["kind"] extends "list"
      ? readonly string[]
      : string | undefined;
};
