import type { PullState } from "../runtime/runtime.ts";

/** Describes a pull's progress for people: `3 of 5 layers, 12 of 80 MiB`. Sizes are those of the layers that have begun. */
export function describePull({ layersDone, layers, bytesDone, bytesTotal }: PullState): string {
  if (layers === 0) return "asking the registry";
  if (layersDone === layers) return `unpacking ${layers} ${layers === 1 ? "layer" : "layers"}`;
  const sizes = bytesTotal === 0 ? "" : `, ${mebibytes(bytesDone)} of ${mebibytes(bytesTotal)} MiB`;
  return `${layersDone} of ${layers} layers${sizes}`;
}

function mebibytes(bytes: number): string {
  const value = bytes / 2 ** 20;
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}
