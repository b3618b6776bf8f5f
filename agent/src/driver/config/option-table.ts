import { type Option, optionRows, refusedRows } from "./option.ts";

const HEAD = ["option", "type", "default", "meaning"] as const;

/** Returns the options as the Markdown table of `docs/nomad.md`. */
export function optionTable(options: readonly Option[]): string {
  const rows = optionRows(options).map(({ path, type, fallback, doc }) => [
    code(path),
    type,
    /^["[]/.test(fallback) ? code(fallback) : fallback,
    doc,
  ]);
  return table(HEAD, rows);
}

const REFUSED_HEAD = ["option", "reason"] as const;

/** Returns the refused options as the Markdown table of `docs/nomad.md`. */
export function refusedTable(options: readonly Option[]): string {
  return table(
    REFUSED_HEAD,
    refusedRows(options).map(({ path, reason }) => [code(path), `${capitalized(reason)}.`]),
  );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function code(text: string): string {
  return `\`${text}\``;
}
