import { useState } from "preact/hooks";

/**
 * Returns the rows whose texts contain every word of the filter, and the text of the filter, which
 * initially is `initial`.
 */
export function useFilter<Row>(
  rows: readonly Row[],
  textOf: (row: Row) => string,
  initial = "",
): { readonly rows: readonly Row[]; readonly text: string; readonly setText: (text: string) => void } {
  const [text, setText] = useState(initial);
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return { rows, text, setText };
  const found = rows.filter((row) => {
    const own = textOf(row).toLowerCase();
    return words.every((word) => own.includes(word));
  });
  return { rows: found, text, setText };
}

export function FilterField({
  text,
  setText,
  label,
}: {
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly label: string;
}) {
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={`${label}  ( / )`}
      value={text}
      onInput={({ currentTarget }) => setText(currentTarget.value)}
    />
  );
}
