import type { PullState } from "../runtime/runtime.ts";

/**
 * Describes the progress of a pull for people: `3 of 5 layers, 12 of 80 MiB`. Sizes include only layers whose download
 * has begun.
 */
export function describePull({ layersDone, layers, bytesDone, bytesTotal }: PullState): string {
  if (layers === 0) return "querying the registry";
  if (layersDone === layers) return `unpacking ${layers} ${layers === 1 ? "layer" : "layers"}`;
  const sizes = bytesTotal === 0 ? "" : `, ${mebibytes(bytesDone)} of ${mebibytes(bytesTotal)} MiB`;
  return `${layersDone} of ${layers} layers${sizes}`;
}

/**
 * Returns the progress of a pull in percent: by bytes once all sizes are known, by layers before. Returns 100 only when
 * all layers are present, and undefined before the registry has answered.
 */
export function pullPercent({ layersDone, layers, bytesDone, bytesTotal }: PullState): number | undefined {
  if (layers === 0) return undefined;
  if (layersDone === layers) return 100;
  const share = bytesTotal === 0 ? layersDone / layers : bytesDone / bytesTotal;
  return Math.min(MAX_PERCENT, Math.floor(share * 100));
}

/** Layers whose download has not begun have no known size. */
const MAX_PERCENT = 99;

function mebibytes(bytes: number): string {
  const value = bytes / 2 ** 20;
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}
