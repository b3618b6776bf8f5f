const UNITS: readonly string[] = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/**
 * Shortens a quantity for display: `23449891Ki` becomes `22.4Gi`. Texts other than whole numbers of
 * binary units are returned unchanged.
 */
export function shortQuantity(text: string): string {
  const [, digits, unit = ""] = /^(\d+)(Ki|Mi|Gi|Ti|Pi)?$/.exec(text) ?? [];
  // Plain numbers are counts (pods, cores), unless they are so large that they must be bytes.
  if (digits === undefined || (unit === "" && digits.length < 7)) return text;
  let value = Number(digits);
  let index = UNITS.indexOf(unit);
  while (value >= 1024 && index < UNITS.length - 1) {
    value /= 1024;
    index++;
  }
  return `${Number.isInteger(value) ? value : value.toFixed(1)}${UNITS[index]}`;
}
