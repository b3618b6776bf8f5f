const UNITS: Readonly<Record<string, string>> = { b: "", k: "Ki", m: "Mi", g: "Gi", t: "Ti" };

/**
 * Converts an amount of memory such as `512m`, `1gb` or `1024` to a quantity; undefined for other
 * texts.
 */
export function memoryQuantity(text: string): string | undefined {
  const [, digits, unit = "b"] = /^(\d+)([bkmgt])?b?$/i.exec(text.trim()) ?? [];
  return digits === undefined ? undefined : `${digits}${UNITS[unit.toLowerCase()] ?? ""}`;
}

/**
 * Converts a number of cores such as `0.5` to a quantity such as `500m`; undefined for other texts
 * and for less than a thousandth.
 */
export function cpuQuantity(text: string): string | undefined {
  if (!/^\d{0,6}(\.\d{1,9})?$/.test(text) || text === "") return undefined;
  const milli = Math.ceil(Number(text) * 1000 - 1e-6);
  if (milli < 1) return undefined;
  return milli % 1000 === 0 ? String(milli / 1000) : `${milli}m`;
}

const SECONDS: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1, ms: 0.001, us: 0.000_001 };

/** Converts a duration such as `1m30s` to whole seconds, rounded up; undefined for other texts. */
export function wholeSeconds(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(h|ms|m|us|s))+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/([\d.]+)(h|ms|m|us|s)/g)];
  const seconds = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (SECONDS[unit ?? ""] ?? 0), 0);
  return Math.ceil(seconds);
}
