import { createHash } from "node:crypto";
import { CoordinatorError } from "../../errors.ts";

/**
 * A file name has at most 255 bytes; the directory store appends a size and a digest, which need
 * 82.
 */
const MAX_SEGMENT_LENGTH = 160;
/** Owner, meta id and file name are three segments; the others are reserved for other layouts. */
const MAX_SEGMENTS = 6;
/**
 * S3 keys have at most 1,024 bytes, some of which the bucket's prefix and the store's suffix need.
 */
const MAX_OBJECT_LENGTH = 600;

/**
 * The pattern of a segment. A segment never starts with a dot, so that none is `.`, `..` or hidden.
 * `@` separates object and store in snapshot URLs.
 */
const SEGMENT = /^[A-Za-z0-9_%-][A-Za-z0-9._%-]*$/;

const ARCHIVE_SUFFIX = ".tar.zst";

/** Returns the reason why a text is not a valid object name, or undefined if it is valid. */
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

/** Throws INVALID for a text that is not a valid object name. */
export function assertObjectName(object: string): void {
  const problem = objectNameProblem(object);
  if (problem !== undefined)
    throw new CoordinatorError(
      "INVALID",
      `object name ${JSON.stringify(object.slice(0, MAX_SEGMENT_LENGTH))} ${problem}`,
    );
}

/**
 * Throws INVALID for a prefix that is neither empty nor a number of whole segments with a `/` at
 * the end.
 */
export function assertObjectPrefix(prefix: string): void {
  if (prefix === "") return;
  if (!prefix.endsWith("/"))
    throw new CoordinatorError("INVALID", `prefix ${JSON.stringify(prefix)} must end with "/"`);
  assertObjectName(prefix.slice(0, -1));
}

/** Returns the prefix of all archives of an owner's workspace. */
export function archivePrefix({
  owner,
  metaId,
}: {
  readonly owner: string;
  readonly metaId: string;
}): string {
  return `${segmentOf(owner)}/${segmentOf(metaId)}/`;
}

/**
 * Returns the name of an archive. `transfer` distinguishes the archives of one instance. Different
 * input gives different names.
 */
export function archiveName(archive: {
  readonly owner: string;
  readonly metaId: string;
  readonly instanceId: string;
  readonly transfer: string;
}): string {
  // Neither part contains the separator, so that `a_b` with `c` and `a` with `b_c` differ.
  const [instance, transfer] = [archive.instanceId, archive.transfer].map(withoutSeparator);
  const file = `${instance}_${transfer}`;
  return `${archivePrefix(archive)}${bounded(file)}${ARCHIVE_SUFFIX}`;
}

/** Returns the URL that snapshot RPCs return and that snapshot initializers accept. */
export function snapshotUrl(object: string, store: string): string {
  return `${object}@${store}`;
}

/** Parses a snapshot URL. Returns undefined if the text is none. */
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

/** Escapes the characters that a segment can't hold, byte by byte as in URLs. */
function escaped(text: string): string {
  let result = "";
  for (const byte of Buffer.from(text, "utf8")) {
    const char = String.fromCharCode(byte);
    const plain = /[A-Za-z0-9_-]/.test(char) || (char === "." && result !== "");
    result += plain ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  // An empty text must differ from an absent one; escaping never results in `%` alone.
  return result === "" ? "%" : result;
}

function withoutSeparator(text: string): string {
  return escaped(text).replaceAll("_", "%5F");
}

/**
 * Shortens a long text and appends its digest, so that two long texts with the same beginning
 * differ.
 */
function bounded(segment: string): string {
  const room = MAX_SEGMENT_LENGTH - ARCHIVE_SUFFIX.length;
  if (segment.length <= room) return segment;
  const digest = createHash("sha256").update(segment).digest("hex").slice(0, 40);
  return `${segment.slice(0, room - digest.length - 3)}%00${digest}`;
}
