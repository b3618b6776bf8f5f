import { createHash } from "node:crypto";
import { once } from "node:events";
import { posix } from "node:path";
import type {
  FileDownloadInitializer,
  FileDownloadInitializer_FileInfo,
} from "@forage/proto/content-service-api/initializer";
import { startConfined } from "../confined.ts";
import type { NoteProgress } from "../content-actions.ts";
import { WorkspaceError } from "../workspace-error.ts";
import { checkoutLocation } from "./checkout-location.ts";
import { fetchUrl } from "./fetch-url.ts";
import type { RefuseAddress } from "./reachable.ts";

export interface DownloadTarget {
  readonly directory: string;
  readonly note: NoteProgress;
  readonly signal: AbortSignal;
}

// Protects the disk from mistakes. A workspace is not meant as a mirror.
const FILES_MAX = 1_000;
const FILE_BYTES_MAX = 4 * 1024 ** 3;
const DIGEST = /^(?:sha256:)?([0-9a-f]{64})$/i;

/**
 * A script whose arguments are the directory and the file's path. It runs as the unprivileged user, so a link leads
 * only to what that user may write.
 */
const WRITE_FILE = ["set -e", "umask 022", 'mkdir -p -- "$1"', 'rm -f -- "$2"', 'cat > "$2"'].join("\n");

/** Downloads files and verifies their digests. Throws a WorkspaceError. */
export async function downloadFiles(
  refuse: RefuseAddress,
  target: DownloadTarget,
  { files, targetLocation }: FileDownloadInitializer,
): Promise<void> {
  if (files.length > FILES_MAX)
    throw new WorkspaceError(
      "INVALID",
      `download.files: ${files.length} files, at most ${FILES_MAX} are allowed`,
    );
  const base = checkoutLocation("download.target_location", targetLocation);
  for (const [index, file] of files.entries()) {
    await downloadFile(refuse, target, { field: `download.files[${index}]`, base, file });
  }
}

interface PlacedFile {
  readonly field: string;
  readonly base: string;
  readonly file: FileDownloadInitializer_FileInfo;
}

async function downloadFile(
  refuse: RefuseAddress,
  { directory, note, signal }: DownloadTarget,
  { field, base, file }: PlacedFile,
): Promise<void> {
  const relative = checkoutLocation(`${field}.file_path`, file.filePath);
  const [, digest] = DIGEST.exec(file.digest) ?? [];
  if (relative === "") throw new WorkspaceError("INVALID", `${field}.file_path: it is empty`);
  if (digest === undefined) throw new WorkspaceError("INVALID", `${field}.digest: it must be sha256:HEX`);
  note(`downloading ${relative}`);
  // The leading ./ keeps a name from being parsed as an option or as a redirection to a descriptor.
  const path = `./${posix.join(base, relative)}`;
  const writer = startConfined({
    file: "sh",
    args: ["-c", WRITE_FILE, "sh", posix.dirname(path) === "." ? "." : `./${posix.dirname(path)}`, path],
    directory,
    offline: true,
  });
  writer.stdout.resume();
  let exited = false;
  const ended = writer.ended.finally(() => {
    exited = true;
  });
  const hash = createHash("sha256");
  try {
    let bytes = 0;
    for await (const chunk of fetchUrl(`${field}.url`, file.url, { refuse, signal })) {
      bytes += chunk.byteLength;
      if (bytes > FILE_BYTES_MAX)
        throw new WorkspaceError("FAILED", `${field}: it has more than ${FILE_BYTES_MAX} bytes`);
      hash.update(chunk);
      if (exited) break;
      if (!writer.stdin.write(chunk)) await Promise.race([once(writer.stdin, "drain", { signal }), ended]);
    }
    writer.stdin.end();
    const exitCode = await ended;
    if (exitCode !== 0) {
      const isFull = /No space left|quota exceeded/i.test(writer.words());
      throw new WorkspaceError(isFull ? "NO_ROOM" : "HOST_FAILED", `${field}: ${writer.words()}`);
    }
    const found = hash.digest("hex");
    if (found !== digest.toLowerCase())
      throw new WorkspaceError("FAILED", `${field}: its SHA-256 is ${found}, not ${digest}`);
  } finally {
    if (!exited) writer.kill();
    await ended.catch(() => undefined);
  }
}
