import type { Findings } from "./findings.ts";

/** The limit of characters of a map key that a path shows, because keys are the sender's text and may be long. */
const MAX_KEY_LENGTH = 100;

/**
 * A field of the request, such as `resources[0].container_service.container.env[1].name`, for which problems can be
 * reported.
 */
export class Field {
  readonly path: string;
  readonly #findings: Findings;

  constructor(findings: Findings, path = "") {
    this.#findings = findings;
    this.path = path;
  }

  /** Returns the field of this message with the given name in the API. */
  at(name: string): Field {
    return new Field(this.#findings, this.path === "" ? name : `${this.path}.${name}`);
  }

  /** Returns the field of an item of this list. */
  item(index: number): Field {
    return new Field(this.#findings, `${this.path}[${index}]`);
  }

  /** Returns the field of a value of this map. */
  key(key: string): Field {
    const shown = key.length <= MAX_KEY_LENGTH ? key : `${key.slice(0, MAX_KEY_LENGTH)}…`;
    return new Field(this.#findings, `${this.path}[${shown.toWellFormed()}]`);
  }

  invalid(problem: string): void {
    this.#findings.invalid(this.path, problem);
  }

  /** Reports the problem if there is one. `problem` is the result of a function of `syntax/`. */
  check(problem: string | undefined): void {
    if (problem !== undefined) this.invalid(problem);
  }
}
