/** The text of a manifest, with its name in messages. */
export interface Source {
  readonly name: string;
  readonly text: string;
}
