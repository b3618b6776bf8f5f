import { run } from "../lib/run.ts";

const ENVIRONMENT = [
  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  ...["HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"],
];
/** A script that writes its input to the path in `$0`. */
const WRITE = 'mkdir -p "$(dirname "$0")" && cat > "$0"';

/**
 * Returns the command line that runs the program in root's directory. Every word is quoted, because a shell of the host
 * parses it.
 */
export function shellLine(argv: readonly string[], prefix: readonly string[] = []): string {
  return [...prefix, "env", "--chdir=/root", ...ENVIRONMENT, ...argv].map(quote).join(" ");
}

/** Copies a file of this machine to a path on a host. `commandFor` returns the command line that runs a program there. */
export async function copyBySsh(
  commandFor: (argv: readonly string[]) => readonly string[],
  from: string,
  to: string,
): Promise<void> {
  await run("sh", ["-c", 'exec "$@" < "$0"', from, ...commandFor(["sh", "-c", WRITE, to])]);
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
