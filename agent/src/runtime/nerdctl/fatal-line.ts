// The format of logrus if its output is not a terminal. A failing nerdctl always ends with such a line.
const FATAL = /time="[^"]{10,40}" level=fatal msg=("(?:[^"\\]|\\.)*"|\S+)[^\n]*\n?$/;

/**
 * Returns the position of nerdctl's last message in its standard error, and the message. Undefined if nerdctl itself
 * did not fail.
 */
export function findFatal(stderr: string): { readonly start: number; readonly message: string } | undefined {
  const match = FATAL.exec(stderr);
  return match === null ? undefined : { start: match.index, message: unquote(match[1] ?? "") };
}

/** The inverse of Go's strconv.Quote. */
function unquote(quoted: string): string {
  if (!quoted.startsWith('"')) return quoted;
  return quoted.slice(1, -1).replace(/\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)/g, (_, code: string) => {
    if (/^[xuU]./.test(code)) return String.fromCodePoint(Number.parseInt(code.slice(1), 16));
    return ESCAPES[code] ?? code;
  });
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
};
