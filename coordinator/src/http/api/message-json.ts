import { forestSchema } from "@forage/proto/forest-schema";
import { JsonMessageReader, type JsonView } from "@forage/proto/json-message";
import { CoordinatorError, type FieldViolation } from "../../errors.ts";

/** The most violations in an answer. */
const MAX_VIOLATIONS = 50;

/**
 * Converts proto-JSON to the form in which `fromJSON` of the type drops nothing: names in either
 * spelling become camelCase. Throws INVALID with the path of each unknown field and of each value
 * of a wrong type.
 */
export function messageJson(body: unknown, type: string): object {
  const violations: FieldViolation[] = [];
  const reader = new JsonMessageReader<unknown>(forestSchema, {
    view: viewOf,
    fail: (_, field, description) => violations.push({ field, description }),
    suggest: () => "",
  });
  const message = reader.read(body, type);
  if (message !== undefined && violations.length === 0) return message;
  const shown = violations.slice(0, MAX_VIOLATIONS);
  const texts = shown.slice(0, 5).map(({ field, description }) => `${field || "the body"}: ${description}`);
  throw new CoordinatorError("INVALID", `the body is invalid: ${texts.join("; ")}`, { violations: shown });
}

function viewOf(value: unknown): JsonView<unknown> {
  if (value === null || value === undefined) return { type: "null" };
  if (Array.isArray(value)) return { type: "list", items: value };
  if (typeof value !== "object") return { type: "scalar", value, source: "" };
  return {
    type: "object",
    entries: Object.entries(value).map(([key, item]) => ({ key, keyNode: item, value: item })),
  };
}
