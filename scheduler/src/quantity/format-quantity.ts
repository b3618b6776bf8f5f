import { NANO_PER_UNIT } from "./parse-quantity.ts";

const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/** Formats billionths of a unit in the shortest exact notation: `250m`, `2`, `1500u`. */
export function formatQuantity(nano: bigint): string {
  for (const [suffix, step] of [
    ["", NANO_PER_UNIT],
    ["m", 1_000_000n],
    ["u", 1_000n],
  ] as const) {
    if (nano % step === 0n) return `${nano / step}${suffix}`;
  }
  return `${nano}n`;
}

/** Formats thousandths of a cpu exactly: `250m`, `2`. */
export function formatMilliCpu(milliCpu: number): string {
  return milliCpu % 1000 === 0 ? String(milliCpu / 1000) : `${milliCpu}m`;
}

/** Formats bytes for people, such as `1.2Gi`: one decimal, rounded down so that a shortage is never hidden. */
export function formatBytes(bytes: number): string {
  let amount = Math.abs(bytes);
  let step = 0;
  while (amount >= 1024 && step < BINARY_SUFFIXES.length - 1) {
    amount /= 1024;
    step++;
  }
  const shown = Math.floor(amount * 10) / 10;
  return `${bytes < 0 ? "-" : ""}${shown}${BINARY_SUFFIXES[step]}`;
}

/** Formats an amount in the scheduler's own units (thousandths of a cpu, bytes, or a count) for people. */
export function formatAmount(resource: string, amount: number): string {
  if (resource === "cpu") return formatMilliCpu(amount);
  if (resource === "memory" || resource === "ephemeral-storage") return formatBytes(amount);
  return String(amount);
}
