/** The variables that clients may set, as with OpenSSH's server on Debian. */
const ENVIRONMENT_NAME = /^(LANG|LC_[A-Z_]{1,32})$/;
const MAX_VALUE_LENGTH = 1_000;
const DEFAULT_TERM = "xterm";

/** The initial directory of shells and commands, to which relative paths of SFTP refer. */
export const CONTENT_DIRECTORY = "/workspace";

// User input is passed as parameters, and never becomes part of the script.
const PREPARE = `export TERM="$1"; command=$2; shift 2; for pair; do export "$pair"; done
cd ${CONTENT_DIRECTORY} 2> /dev/null
for shell in "$SHELL" /bin/bash /bin/sh; do [ -x "$shell" ] && break; done`;
const RUN_SHELL = `${PREPARE}\nexec "$shell" -l`;
const RUN_COMMAND = `${PREPARE}\nexec "$shell" -c "$command"`;

export type ShellCommand = { readonly type: "shell" } | { readonly type: "command"; readonly text: string };
export type RemoteCommand = ShellCommand | { readonly type: "sftp" };

export interface RemoteEnvironment {
  readonly term: string | undefined;
  /** The variables that the client set. Only those of the locale are accepted. */
  readonly variables: ReadonlyMap<string, string>;
}

/** Returns the argument vector that runs the command in a container. */
export function commandLine(command: ShellCommand, { term, variables }: RemoteEnvironment): string[] {
  const pairs = [...variables].map(([name, value]) => `${name}=${value}`);
  const text = command.type === "command" ? command.text : "";
  return ["/bin/sh", "-c", scriptOf(command), "ssh", term || DEFAULT_TERM, text, ...pairs];
}

/** Reports whether a client may set the variable. */
export function isAllowedVariable(name: string, value: string): boolean {
  return ENVIRONMENT_NAME.test(name) && value.length <= MAX_VALUE_LENGTH && !value.includes("\0");
}

function scriptOf({ type }: ShellCommand): string {
  switch (type) {
    case "shell":
      return RUN_SHELL;
    case "command":
      return RUN_COMMAND;
    default:
      return type satisfies never;
  }
}
