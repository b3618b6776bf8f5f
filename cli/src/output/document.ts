import { stringify } from "yaml";

/**
 * Renders one JSON or YAML document that ends with a line feed. Texts of several lines, such as
 * scripts, become literal blocks in YAML.
 */
export function renderDocument(format: "json" | "yaml", value: unknown): string {
  return format === "json"
    ? `${JSON.stringify(value, null, 2)}\n`
    : stringify(value, { aliasDuplicateObjects: false, blockQuote: "literal", lineWidth: 0 });
}
