import { constants } from "node:fs";
import { type ChildRunner, outputEndOf } from "./run-child.ts";
import { type HostPathType, VolumeError } from "./volumes.ts";

// A local file system answers within milliseconds, but the path may be on a server that is unreachable.
const ANSWER_MS = 10_000;

const TYPE_BITS = constants.S_IFMT;
const FILE_TYPES: ReadonlyMap<number, string> = new Map([
  [constants.S_IFIFO, "a fifo"],
  [constants.S_IFCHR, "a character device"],
  [constants.S_IFDIR, "a directory"],
  [constants.S_IFBLK, "a block device"],
  [constants.S_IFREG, "a file"],
  [constants.S_IFSOCK, "a socket"],
]);

const EXPECTED: Readonly<Record<HostPathType, string | undefined>> = {
  "": undefined,
  Directory: "a directory",
  DirectoryOrCreate: "a directory",
  File: "a file",
  FileOrCreate: "a file",
  Socket: "a socket",
  CharDevice: "a character device",
  BlockDevice: "a block device",
};

/**
 * Checks a host path, creates it if its type requires that, and returns its canonical form. @throws VolumeError
 * SOURCE_MISSING, WRONG_TYPE, UNAVAILABLE.
 */
export async function prepareHostPath(
  path: string,
  type: HostPathType,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<string> {
  const options = { signal, timeoutMs: ANSWER_MS };
  const found = (await typeAt(path, children, signal)) ?? (await create(path, type, children, signal));
  checkHostPathType(path, type, found);
  return (await children.must("realpath", ["-e", "-z", "--", path], options)).replace(/\0$/, "");
}

/** Checks the type of a host path. @throws VolumeError WRONG_TYPE if it differs from the declared type. */
export function checkHostPathType(path: string, type: HostPathType, found: string | undefined): void {
  const expected = EXPECTED[type];
  if (expected !== undefined && found !== expected)
    throw new VolumeError("WRONG_TYPE", `host path ${path} is ${found ?? "nothing"}, not ${expected}`);
}

/**
 * Returns the type of the file at the path, with links followed, or undefined if there is none. A child process checks it,
 * because a mount there may hang.
 */
export async function typeAt(
  path: string,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<string | undefined> {
  const result = await children.run("stat", ["-L", "-c", "%f", "--", path], { signal, timeoutMs: ANSWER_MS });
  if (result.exitCode === 0) {
    const mode = Number.parseInt(result.stdout, 16);
    return FILE_TYPES.get(mode & TYPE_BITS) ?? "a file of an unknown type";
  }
  if (/No such file or directory/.test(result.stderr)) return undefined;
  throw new VolumeError("HOST_FAILED", outputEndOf(result));
}

/** Creates the path. As in Kubernetes' runtimes, a missing path without a declared type becomes a directory. */
async function create(
  path: string,
  type: HostPathType,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<string> {
  const options = { signal, timeoutMs: ANSWER_MS };
  switch (type) {
    case "":
    case "DirectoryOrCreate":
      await children.must("mkdir", ["-p", "-m", "0755", "--", path], options);
      return "a directory";
    case "FileOrCreate":
      await children.must("touch", ["--", path], options);
      await children.must("chmod", ["0644", "--", path], options);
      return "a file";
    default:
      throw new VolumeError(
        "SOURCE_MISSING",
        `host path ${path} doesn't exist; it should be ${EXPECTED[type]}`,
      );
  }
}
