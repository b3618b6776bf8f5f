import { type Option, optionRows } from "./option.ts";

const HEAD = ["option", "type", "default", "meaning"] as const;

/** Returns the options as the Markdown table of `docs/nomad.md`. */
export function optionTable(options: readonly Option[]): string {
  const rows = optionRows(options).map(({ path, type, fallback, doc }) => [
    code(path),
    type,
    /^["[]/.test(fallback) ? code(fallback) : fallback,
    doc,
  ]);
  return [HEAD, HEAD.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}
