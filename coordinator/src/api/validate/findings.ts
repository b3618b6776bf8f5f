import { CoordinatorError, type FieldViolation } from "../../errors.ts";

/** More than anyone mends in one go, and than an answer holds; the rest is counted, and shows after these. */
const maxFindings = 200;

/** Collects all faults of a request, so that one answer reports them together. */
export class Findings {
  readonly #violations: FieldViolation[] = [];
  #count = 0;

  invalid(field: string, description: string): void {
    this.#count++;
    if (this.#violations.length < maxFindings) this.#violations.push({ field, description });
  }

  /** The first 200 invalid fields so far. */
  get invalidFields(): readonly FieldViolation[] {
    return this.#violations;
  }

  /** Throws INVALID if anything is invalid. */
  raise(): void {
    if (this.#count === 0) return;
    const named = this.#violations
      .slice(0, maxInMessage)
      .map(({ field, description }) => `${field}: ${description}`);
    const more = this.#count > maxInMessage ? `; and ${this.#count - maxInMessage} more` : "";
    const message = `the request is invalid: ${named.join("; ")}${more}`;
    throw new CoordinatorError("INVALID", message, { violations: this.#violations });
  }
}

/** Findings that the message itself names. */
const maxInMessage = 5;
