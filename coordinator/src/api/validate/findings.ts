import { CoordinatorError, type FieldViolation } from "../../errors.ts";

/** The limit of findings in one response. Further findings are counted, and appear once these are corrected. */
const MAX_FINDINGS = 200;

/** Collects all problems of a request, so that one response reports them together. */
export class Findings {
  readonly #violations: FieldViolation[] = [];
  #count = 0;

  invalid(field: string, description: string): void {
    this.#count++;
    if (this.#violations.length < MAX_FINDINGS) this.#violations.push({ field, description });
  }

  /** The first 200 invalid fields. */
  get invalidFields(): readonly FieldViolation[] {
    return this.#violations;
  }

  /** @throws CoordinatorError INVALID if a problem was reported. */
  raise(): void {
    if (this.#count === 0) return;
    const named = this.#violations
      .slice(0, MAX_IN_MESSAGE)
      .map(({ field, description }) => `${field}: ${description}`);
    const more = this.#count > MAX_IN_MESSAGE ? `; and ${this.#count - MAX_IN_MESSAGE} more` : "";
    const message = `the request is invalid: ${named.join("; ")}${more}`;
    throw new CoordinatorError("INVALID", message, { violations: this.#violations });
  }
}

/** The number of findings that the message contains. */
const MAX_IN_MESSAGE = 5;
