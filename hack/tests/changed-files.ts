import { run } from "../lib/run.ts";

/** Git refuses to read a checkout of another user, such as root under sudo, unless its configuration declares the checkout safe. */
const SAFE = ["-c", "safe.directory=*"];

/**
 * Returns the files that differ from the common ancestor of `base` and the current commit, with uncommitted and new
 * files.
 */
export async function changedFiles(root: string, base: string): Promise<string[]> {
  const git = async (...args: string[]): Promise<string[]> => {
    const { stdout } = await run("git", [...SAFE, ...args], { cwd: root });
    return stdout.split("\n").filter((line) => line !== "");
  };
  const [from = base] = await git("merge-base", base, "HEAD");
  const tracked = await git("diff", "--name-only", "--no-renames", from);
  const added = await git("ls-files", "--others", "--exclude-standard");
  return [...new Set([...tracked, ...added])].sort();
}
