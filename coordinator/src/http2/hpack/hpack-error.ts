/** The header block can't be decoded. The connection can't continue, because both sides' tables may differ from here on. */
export class HpackError extends Error {
  override readonly name = "HpackError";
}
