import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { Directory, type ResolvedPath, receiveTree, resolveInRoot, sendTree } from "@forage/archive";
import { becomeUser } from "./become-user.ts";
import { FAILURE, REMARK, ROOT_DESCRIPTOR } from "./container-program.ts";

/** The first argument with which the agent's program runs this command. */
export const COPY_FILES = "copy-files";

/**
 * Runs one copy out of or into a container in a process of its own. A hanging file system blocks no other copy, and the kernel
 * enforces the rights of the container's user. The arguments are `out` or `into`, a path, and the user's ids. A tar stream goes
 * to standard output or comes from standard input. Returns the exit code.
 */
export async function copyFiles(args: readonly string[]): Promise<number> {
  const [direction = "", path = "", ...user] = args;
  try {
    becomeUser(user);
    const root = Directory.ofDescriptor(ROOT_DESCRIPTOR);
    if (direction === "out") await copyOut(root, path);
    else await copyInto(root, path);
    return 0;
  } catch (error) {
    process.stderr.write(`${FAILURE}${reasonOf(error, path)}\n`);
    return 1;
  }
}

async function copyOut(root: Directory, path: string): Promise<void> {
  const place = await resolveInRoot(root, path);
  try {
    refuseMissing(place, path);
    const name = place.name ?? "root";
    for await (const chunk of sendTree(place, { name, skipped: remark })) {
      if (!process.stdout.write(chunk)) await once(process.stdout, "drain");
    }
  } finally {
    await place.directory.close();
  }
}

async function copyInto(root: Directory, path: string): Promise<void> {
  const place = await resolveInRoot(root, path);
  const target = await targetOf(place, path);
  try {
    await receiveTree(process.stdin, {
      ...target,
      randomName: () => randomBytes(8).toString("hex"),
      // In a container, its own links can't lead out of it.
      links: "any",
      skipped: remark,
    });
  } finally {
    await target.into.close();
  }
}

/**
 * Returns the target: an existing directory receives the source under its own name, otherwise the path is the new name.
 */
async function targetOf(
  { directory, name, stats }: ResolvedPath,
  path: string,
): Promise<{ into: Directory; name?: string }> {
  if (name === undefined) return { into: directory };
  if (stats?.isDirectory()) {
    try {
      return { into: await directory.enter(name) };
    } finally {
      await directory.close();
    }
  }
  if (path.endsWith("/")) throw new Error(`${path} is not a directory in the container`);
  return { into: directory, name };
}

function refuseMissing({ name, stats }: ResolvedPath, path: string): void {
  if (name === undefined) return;
  if (stats === undefined) throw new Error(`there is no ${path} in the container`);
  if (path.endsWith("/") && !stats.isDirectory())
    throw new Error(`${path} is not a directory in the container`);
}

function remark(path: string, why: string): void {
  process.stderr.write(`${REMARK}${path} ${why}\n`);
}

function reasonOf(error: unknown, path: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const text: Readonly<Record<string, string>> = {
    EACCES: "the container's user may not do this",
    EPERM: "the container's user may not do this",
    EROFS: "it is on a read-only file system",
    ENOSPC: "no space is left in the container",
    EDQUOT: "no space is left in the container",
    ETXTBSY: "it is a running program",
    EBUSY: "it is a mount point",
    ELOOP: "a directory was exchanged for a link",
    EMFILE: "too many directories are open",
  };
  const known = code === undefined ? undefined : text[code];
  // Node's own messages contain file descriptors, which mean nothing to users.
  if (known !== undefined) return `${path}: ${known} (${code})`;
  return code?.startsWith("E") ? `${path}: ${code}` : (message.split("\n", 1)[0] ?? "");
}
