import { CoordinatorError, type FieldViolation } from "../../errors.ts";

/** More than anyone mends in one go, and than an answer holds; the rest is counted, and shows after these. */
const maxFindings = 200;

interface Found {
  readonly violations: FieldViolation[];
  count: number;
}

/** Collects all faults of a request, so that one answer reports them together. */
export class Findings {
  readonly #invalid: Found = { violations: [], count: 0 };
  readonly #unimplemented: Found = { violations: [], count: 0 };

  invalid(field: string, description: string): void {
    add(this.#invalid, { field, description });
  }

  unimplemented(field: string, description: string): void {
    add(this.#unimplemented, { field, description });
  }

  /** The first 200 invalid fields so far. */
  get invalidFields(): readonly FieldViolation[] {
    return this.#invalid.violations;
  }

  /** Throws INVALID if anything is invalid, else UNIMPLEMENTED if anything is not supported. */
  raise(): void {
    if (this.#invalid.count > 0) throw errorOf("INVALID", "the request is invalid", this.#invalid);
    if (this.#unimplemented.count > 0) {
      throw errorOf(
        "UNIMPLEMENTED",
        "the request uses what this version does not support",
        this.#unimplemented,
      );
    }
  }
}

/** Findings that the message itself names. */
const maxInMessage = 5;

function add(found: Found, violation: FieldViolation): void {
  found.count++;
  if (found.violations.length < maxFindings) found.violations.push(violation);
}

function errorOf(
  code: "INVALID" | "UNIMPLEMENTED",
  summary: string,
  { violations, count }: Found,
): CoordinatorError {
  const named = violations.slice(0, maxInMessage).map(({ field, description }) => `${field}: ${description}`);
  const more = count > maxInMessage ? `; and ${count - maxInMessage} more` : "";
  return new CoordinatorError(code, `${summary}: ${named.join("; ")}${more}`, { violations });
}
