/**
 * A header block that can't be decoded. The connection must end, because the tables of both sides
 * may differ from now on.
 */
export class HpackError extends Error {
  override readonly name = "HpackError";
}
