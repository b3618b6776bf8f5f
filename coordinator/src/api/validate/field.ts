import type { Findings } from "./findings.ts";

/** Keys of maps are the sender's own text and may be of any length: enough of one to find it by. */
const MAX_KEY_LENGTH = 100;

/** A place in the request, such as `resources[0].container_service.container.env[1].name`, at which things can be wrong. */
export class Field {
  readonly path: string;
  readonly #findings: Findings;

  constructor(findings: Findings, path = "") {
    this.#findings = findings;
    this.path = path;
  }

  /** Returns the field of this message that has this name in the contract. */
  at(name: string): Field {
    return new Field(this.#findings, this.path === "" ? name : `${this.path}.${name}`);
  }

  /** Returns an item of this list. */
  item(index: number): Field {
    return new Field(this.#findings, `${this.path}[${index}]`);
  }

  /** A value of the map here. */
  key(key: string): Field {
    const shown = key.length <= MAX_KEY_LENGTH ? key : `${key.slice(0, MAX_KEY_LENGTH)}…`;
    return new Field(this.#findings, `${this.path}[${shown.toWellFormed()}]`);
  }

  invalid(problem: string): void {
    this.#findings.invalid(this.path, problem);
  }

  /** Takes what a rule of `syntax/` answers: a problem, or undefined where there is none. */
  check(problem: string | undefined): void {
    if (problem !== undefined) this.invalid(problem);
  }
}
