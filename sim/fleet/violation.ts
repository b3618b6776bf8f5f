/** A violated rule. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** Reports a violation. The first one ends the simulation. */
export type Blame = (what: string) => void;
