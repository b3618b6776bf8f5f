/** An invariant that was broken. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** Takes the first violation; the simulation ends with it. */
export type Blame = (what: string) => void;
