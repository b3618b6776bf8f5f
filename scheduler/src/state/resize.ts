/** Copies `from` into the larger array. */
export function resize<A extends Float64Array | Int32Array | Uint32Array | Uint8Array | Int8Array>(
  from: A,
  into: A,
): A {
  into.set(from);
  return into;
}
