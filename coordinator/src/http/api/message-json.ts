import { forestSchema } from "@forage/proto/forest-schema";
import { JsonMessageReader, type JsonView } from "@forage/proto/json-message";
import { CoordinatorError, type FieldViolation } from "../../errors.ts";

/** The limit of violations in an answer; more would not help the caller. */
const MAX_VIOLATIONS = 50;

/**
 * Reads a message of the public contract in proto-JSON form, so that `fromJSON` of its type leaves nothing out: names in either spelling
 * become camelCase. Throws INVALID with each unknown field and each value of the wrong type by its path.
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
  const said = shown.slice(0, 5).map(({ field, description }) => `${field || "the body"}: ${description}`);
  throw new CoordinatorError("INVALID", `the body is invalid: ${said.join("; ")}`, { violations: shown });
}

function viewOf(value: unknown): JsonView<unknown> {
  if (value === null || value === undefined) return { kind: "null" };
  if (Array.isArray(value)) return { kind: "list", items: value };
  if (typeof value !== "object") return { kind: "scalar", value, source: "" };
  return {
    kind: "object",
    entries: Object.entries(value).map(([key, item]) => ({ key, keyNode: item, value: item })),
  };
}
