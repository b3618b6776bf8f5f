const UNITS_MS: Readonly<Record<string, number>> = {
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
};
const PATTERN = /^(\d+d)?(\d+h)?(\d+m(?!s))?(\d+(?:\.\d+)?s)?(\d+ms)?$/;

/**
 * Parses a duration such as `90s`, `1h30m`, `1.5s`, `250ms` or `7d`. Returns milliseconds;
 * undefined for 0 and other texts.
 */
export function parseDurationMs(text: string): number | undefined {
  const parts = PATTERN.exec(text)?.slice(1) ?? [];
  let totalMs = 0;
  for (const part of parts) {
    const [, count, unit] = /^([\d.]+)([a-z]+)$/.exec(part ?? "") ?? [];
    totalMs += Number(count ?? 0) * (UNITS_MS[unit ?? ""] ?? 0);
  }
  return Number.isSafeInteger(Math.ceil(totalMs)) && totalMs > 0 ? totalMs : undefined;
}

/** Formats a duration by its two largest units: `3m12s`, `5h2m`, `12d4h`, `0s`. Never rounds up. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  if (first === -1) return "0s";
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count}${unit}`).join("");
}
