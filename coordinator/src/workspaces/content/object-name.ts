import { createHash } from "node:crypto";
import { CoordinatorError } from "../../errors.ts";

/** A file name holds 255 bytes; the directory engine appends a size and a digest, which take 82. */
const MAX_SEGMENT_LENGTH = 160;
/** Owner, meta id and file name make three; the rest is room for other layouts. */
const MAX_SEGMENTS = 6;
/** S3 keys hold 1,024 bytes, of which the bucket's prefix and the engine's suffix take some. */
const MAX_OBJECT_LENGTH = 600;

/** Segments never start with a dot, so that none is `.`, `..` or hidden; `@` separates the object from the store in snapshot URLs. */
const SEGMENT = /^[A-Za-z0-9_%-][A-Za-z0-9._%-]*$/;

const ARCHIVE_SUFFIX = ".tar.zst";

/** Returns the reason why a text can't name an object, or undefined if it can. */
export function objectNameProblem(object: string): string | undefined {
  if (object.length > MAX_OBJECT_LENGTH) return `is longer than ${MAX_OBJECT_LENGTH} characters`;
  const segments = object.split("/");
  if (segments.length > MAX_SEGMENTS) return `has more than ${MAX_SEGMENTS} segments`;
  if (segments.some((segment) => segment.length > MAX_SEGMENT_LENGTH))
    return `has a segment with more than ${MAX_SEGMENT_LENGTH} characters`;
  if (!segments.every((segment) => SEGMENT.test(segment)))
    return "must consist of segments of letters, digits, `.`, `_`, `%` and `-` that don't start with a dot, separated by `/`";
  return undefined;
}

/** Throws INVALID for a text that can't name an object. */
export function assertObjectName(object: string): void {
  const problem = objectNameProblem(object);
  if (problem !== undefined)
    throw new CoordinatorError(
      "INVALID",
      `object name ${JSON.stringify(object.slice(0, MAX_SEGMENT_LENGTH))} ${problem}`,
    );
}

/** Throws INVALID for a prefix that is neither empty nor whole segments with a `/` at the end. */
export function assertObjectPrefix(prefix: string): void {
  if (prefix === "") return;
  if (!prefix.endsWith("/"))
    throw new CoordinatorError("INVALID", `prefix ${JSON.stringify(prefix)} must end with "/"`);
  assertObjectName(prefix.slice(0, -1));
}

/** The prefix under which all archives of an owner's workspace lie. */
export function archivePrefix({
  owner,
  metaId,
}: {
  readonly owner: string;
  readonly metaId: string;
}): string {
  return `${segmentOf(owner)}/${segmentOf(metaId)}/`;
}

/** Names an archive; `transfer` distinguishes the archives of one instance. Equal input gives an equal name, different input a different one. */
export function archiveName(archive: {
  readonly owner: string;
  readonly metaId: string;
  readonly instanceId: string;
  readonly transfer: string;
}): string {
  // The parts hold no separator of their own, so that `a_b` with `c` and `a` with `b_c` differ.
  const [instance, transfer] = [archive.instanceId, archive.transfer].map(withoutSeparator);
  const file = `${instance}_${transfer}`;
  return `${archivePrefix(archive)}${bounded(file)}${ARCHIVE_SUFFIX}`;
}

/** Returns the URL that snapshot RPCs answer and that snapshot initializers accept. */
export function snapshotUrl(object: string, store: string): string {
  return `${object}@${store}`;
}

/** Returns the parts of a snapshot URL, or undefined if the text is none. */
export function parseSnapshotUrl(
  url: string,
): { readonly object: string; readonly store: string } | undefined {
  const at = url.lastIndexOf("@");
  const [object, store] = [url.slice(0, at), url.slice(at + 1)];
  return at < 1 || store === "" || objectNameProblem(object) !== undefined ? undefined : { object, store };
}

function segmentOf(text: string): string {
  return bounded(escaped(text));
}

/** Escapes what a segment can't hold, by UTF-8 byte as URLs do. */
function escaped(text: string): string {
  let result = "";
  for (const byte of Buffer.from(text, "utf8")) {
    const char = String.fromCharCode(byte);
    const plain = /[A-Za-z0-9_-]/.test(char) || (char === "." && result !== "");
    result += plain ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  // An empty segment would look like a missing one; `%` alone is never the result of escaping.
  return result === "" ? "%" : result;
}

function withoutSeparator(text: string): string {
  return escaped(text).replaceAll("_", "%5F");
}

/** A long text ends in its digest, so that two long texts with the same beginning stay apart. */
function bounded(segment: string): string {
  const room = MAX_SEGMENT_LENGTH - ARCHIVE_SUFFIX.length;
  if (segment.length <= room) return segment;
  const digest = createHash("sha256").update(segment).digest("hex").slice(0, 40);
  return `${segment.slice(0, room - digest.length - 3)}%00${digest}`;
}
