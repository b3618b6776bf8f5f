import { stringify } from "yaml";

/** One JSON or YAML document with a line feed at its end. Texts of several lines, such as scripts, are YAML's literal blocks. */
export function renderDocument(format: "json" | "yaml", value: unknown): string {
  return format === "json"
    ? `${JSON.stringify(value, null, 2)}\n`
    : stringify(value, { aliasDuplicateObjects: false, blockQuote: "literal", lineWidth: 0 });
}
