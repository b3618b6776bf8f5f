import { readFile } from "node:fs/promises";

/** Returns the directory with overlayfs' changes to a process's root; undefined: it is no overlay, or the process is gone. */
export async function findOwnLayer(pid: number): Promise<string | undefined> {
  const table = await readFile(`/proc/${pid}/mountinfo`, "utf8").catch(() => "");
  return parseOwnLayer(table);
}

/** A line: `36 35 98:0 / / rw,noatime master:1 - overlay overlay rw,lowerdir=/a:/b,upperdir=/c/fs,workdir=/c/work`. */
export function parseOwnLayer(table: string): string | undefined {
  for (const line of table.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [type, , options = ""] = after.split(" ");
    if (before.split(" ")[4] !== "/" || type !== "overlay") continue;
    const upper = options.split(",").find((it) => it.startsWith("upperdir="));
    // Blanks and backslashes are written as octal numbers.
    return upper
      ?.slice("upperdir=".length)
      .replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  }
  return undefined;
}
