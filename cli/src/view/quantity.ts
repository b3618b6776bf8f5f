const UNITS: readonly string[] = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/**
 * Shortens a quantity for people: `23449891Ki` becomes `22.4Gi`. Leaves text that is no whole number of binary units as it is.
 */
export function shortQuantity(text: string): string {
  const [, digits, unit = ""] = /^(\d+)(Ki|Mi|Gi|Ti|Pi)?$/.exec(text) ?? [];
  // Plain numbers are counts (pods, cores) unless they are as large as only bytes can be.
  if (digits === undefined || (unit === "" && digits.length < 7)) return text;
  let value = Number(digits);
  let index = UNITS.indexOf(unit);
  while (value >= 1024 && index < UNITS.length - 1) {
    value /= 1024;
    index++;
  }
  return `${Number.isInteger(value) ? value : value.toFixed(1)}${UNITS[index]}`;
}
