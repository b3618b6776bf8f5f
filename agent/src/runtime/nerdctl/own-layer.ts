import { readFile } from "node:fs/promises";

/**
 * Returns the upper directory of the overlay that is a process's root. Undefined if the root is not an overlay or the
 * process is gone.
 */
export async function findOwnLayer(pid: number): Promise<string | undefined> {
  const table = await readFile(`/proc/${pid}/mountinfo`, "utf8").catch(() => "");
  return parseOwnLayer(table);
}

/**
 * Parses a mount table with lines such as `36 35 98:0 / / rw,noatime master:1 - overlay overlay
 * rw,lowerdir=/a:/b,upperdir=/c/fs,workdir=/c/work`.
 */
export function parseOwnLayer(table: string): string | undefined {
  for (const line of table.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [type, , options = ""] = after.split(" ");
    if (before.split(" ")[4] !== "/" || type !== "overlay") continue;
    const upper = options.split(",").find((it) => it.startsWith("upperdir="));
    // The kernel writes blanks and backslashes as octal numbers.
    return upper
      ?.slice("upperdir=".length)
      .replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  }
  return undefined;
}
