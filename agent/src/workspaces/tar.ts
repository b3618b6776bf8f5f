import type { Capability } from "./confined.ts";
import { startConfined } from "./confined.ts";
import { WorkspaceError } from "./workspace-error.ts";

/* Packs and unpacks archives of directories: GNU tar in the POSIX format, compressed with zstd. */

/**
 * Owners are stored as numbers, because the host doesn't know the container's users. Access times are left out, because
 * they would make archives differ.
 */
const CREATE_OPTIONS = [
  ...[
    "--create",
    "--file=-",
    "--format=posix",
    "--pax-option=exthdr.name=%d/PaxHeaders/%f,exthdr.mtime=0,delete=atime,delete=ctime",
  ],
  ...["--numeric-owner", "--xattrs", "--xattrs-include=*", "--acls", "--sparse", "--sort=name"],
  ...["--no-check-device", "--warning=no-file-changed", "--warning=no-file-ignored"],
];
const EXTRACT_OPTIONS = [
  ...["--extract", "--file=-", "--numeric-owner", "--same-owner", "--same-permissions"],
  ...["--xattrs", "--xattrs-include=*", "--acls", "--delay-directory-restore"],
];
// Level 3 is zstd's default. One thread leaves the other processors to the node's other work.
const COMPRESS = "--use-compress-program=zstd -q -3 -T1";
const DECOMPRESS = "--use-compress-program=zstd -q";
/** tar's exit code if files changed while they were read. The archive is complete and readable. */
const SOME_FILES_CHANGED = 1;

/** Allows reading files of every owner, but nothing else. */
const READ_CAPABILITIES: readonly Capability[] = ["dac_read_search"];
/** The capabilities that restoring files' owners, modes and attributes needs. */
const WRITE_CAPABILITIES: readonly Capability[] = [
  "chown",
  "dac_override",
  "fowner",
  "fsetid",
  "mknod",
  "setfcap",
];

/**
 * Yields the archive of a directory. Throws after the last chunk if the archive is not complete. Aborting ends the
 * programs. Memory holds only the content of the pipes.
 */
export async function* packDirectory(directory: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  signal.throwIfAborted();
  const tar = startConfined({
    file: "tar",
    args: [...CREATE_OPTIONS, COMPRESS, "."],
    directory,
    capabilities: READ_CAPABILITIES,
    background: true,
  });
  const { kill } = tar;
  signal.addEventListener("abort", kill, { once: true });
  tar.stdin.end();
  let finished = false;
  try {
    yield* tar.stdout as AsyncIterable<Buffer>;
    const exitCode = await tar.ended;
    finished = true;
    signal.throwIfAborted();
    if (exitCode !== 0 && exitCode !== SOME_FILES_CHANGED) throw notPacked(exitCode, tar.words());
  } finally {
    signal.removeEventListener("abort", kill);
    if (!finished) kill();
  }
}

/** Unpacks an archive into an empty directory that no other program uses. */
export async function unpackArchive(
  chunks: AsyncIterable<Uint8Array>,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const tar = startConfined({
    file: "tar",
    args: [...EXTRACT_OPTIONS, DECOMPRESS],
    directory,
    capabilities: WRITE_CAPABILITIES,
  });
  const { kill } = tar;
  signal.addEventListener("abort", kill, { once: true });
  tar.stdout.resume();
  let exited = false;
  let wake = (): void => undefined;
  const ended = tar.ended.finally(() => {
    exited = true;
    wake();
  });
  // Killing the program on abort ends this wait too. A race with `ended` would keep a reference to each chunk.
  const drained = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
      if (exited) resolve();
    });
  tar.stdin.on("drain", () => wake());
  try {
    for await (const chunk of chunks) {
      signal.throwIfAborted();
      if (exited) break;
      if (!tar.stdin.write(chunk)) await drained();
    }
    tar.stdin.end();
    const exitCode = await ended;
    signal.throwIfAborted();
    if (exitCode !== 0) throw notUnpacked(exitCode, tar.words());
  } finally {
    signal.removeEventListener("abort", kill);
    if (!exited) kill();
    await ended.catch(() => undefined);
  }
}

function notPacked(exitCode: number | undefined, words: string): WorkspaceError {
  if (isFull(words))
    return new WorkspaceError("NO_ROOM", `the archive could not be made: no space is left: ${words}`);
  return new WorkspaceError("HOST_FAILED", `the archive could not be made: ${reasonOf(exitCode, words)}`);
}

function notUnpacked(exitCode: number | undefined, words: string): WorkspaceError {
  if (isFull(words))
    return new WorkspaceError("NO_ROOM", `the archive could not be unpacked: no space is left: ${words}`);
  const message = `the archive could not be unpacked: ${reasonOf(exitCode, words)}`;
  return new WorkspaceError("HOST_FAILED", message);
}

function reasonOf(exitCode: number | undefined, words: string): string {
  const how = exitCode === undefined ? "tar was killed by a signal" : `tar failed with exit code ${exitCode}`;
  return words === "" ? how : `${how}: ${words}`;
}

function isFull(words: string): boolean {
  return /No space left on device|Disk quota exceeded|Wrote only \d+ of/i.test(words);
}
