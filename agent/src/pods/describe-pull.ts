import type { PullState } from "../runtime/runtime.ts";

/** Describes a pull's progress for people: `3 of 5 layers, 12 of 80 MiB`. Sizes are those of the layers that have begun. */
export function describePull({ layersDone, layers, bytesDone, bytesTotal }: PullState): string {
  if (layers === 0) return "asking the registry";
  if (layersDone === layers) return `unpacking ${layers} ${layers === 1 ? "layer" : "layers"}`;
  const sizes = bytesTotal === 0 ? "" : `, ${mebibytes(bytesDone)} of ${mebibytes(bytesTotal)} MiB`;
  return `${layersDone} of ${layers} layers${sizes}`;
}

/**
 * Returns a pull's progress in percent, by bytes as far as their number is known, and by layers before. 100 only once all layers are
 * there. Undefined: the registry has not answered yet.
 */
export function pullPercent({ layersDone, layers, bytesDone, bytesTotal }: PullState): number | undefined {
  if (layers === 0) return undefined;
  if (layersDone === layers) return 100;
  const share = bytesTotal === 0 ? layersDone / layers : bytesDone / bytesTotal;
  return Math.min(MAX_PERCENT, Math.floor(share * 100));
}

/** Layers that have not begun have no size yet. */
const MAX_PERCENT = 99;

function mebibytes(bytes: number): string {
  const value = bytes / 2 ** 20;
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}
