import { messageOf } from "@forage/common/message-of";
import type { ServerChannel, Session } from "ssh2";
import type { PodSessionKind } from "../../forwarding/dial-pod.ts";
import type { CountBytes } from "../../forwarding/tunnel-stream.ts";
import type { Tunnel } from "../../link/session-broker.ts";
import { CONTENT_DIRECTORY, commandLine, isAllowedVariable, type RemoteCommand } from "./commands.ts";
import { runExec } from "./run-exec.ts";

/** The size limit of a command, of the same order as OpenSSH's own. */
const MAX_COMMAND_BYTES = 128 * 1024;
const MAX_VARIABLES = 32;
/**
 * The most columns of a terminal. Larger sizes are errors, or attempts to make programs use memory.
 */
const MAX_COLUMNS = 10_000;
/** The control characters by which a terminal sends signals. */
const TERMINAL_SIGNALS: Readonly<Record<string, string>> = { INT: "\x03", QUIT: "\x1c", TSTP: "\x1a" };

interface Size {
  readonly columns: number;
  readonly rows: number;
}

interface Terminal extends Size {
  readonly term: string;
}

export interface SshSessionOptions {
  /** Opens a session in the workspace. Throws CoordinatorError. */
  readonly open: (kind: PodSessionKind) => Tunnel;
  readonly moved: CountBytes;
}

/**
 * Serves one session of a client: a shell, a command or an SFTP subsystem, with or without a
 * terminal.
 */
export function serveSession(session: Session, { open, moved }: SshSessionOptions): void {
  const variables = new Map<string, string>();
  let terminal: Terminal | undefined;
  let tunnel: Tunnel | undefined;
  let channel: ServerChannel | undefined;
  const run = (accept: () => ServerChannel, reject: () => void, command: RemoteCommand): void => {
    // A session runs only one command (RFC 4254, section 6.5).
    if (
      channel !== undefined ||
      (command.type === "command" && Buffer.byteLength(command.text) > MAX_COMMAND_BYTES)
    ) {
      reject?.();
      return;
    }
    channel = accept();
    channel.on("error", () => {});
    try {
      tunnel = open(sessionKind(command, { terminal, variables }));
    } catch (error) {
      channel.stderr.write(`${messageOf(error)}\r\n`);
      channel.exit(255);
      channel.close();
      return;
    }
    void runExec(tunnel, channel, moved);
  };
  session.on("pty", (accept, _reject, { cols, rows, term }: PtyInfo) => {
    terminal = { ...sizeOf(cols, rows), term: term ?? "" };
    accept?.();
  });
  session.on("window-change", (accept, _reject, { cols, rows }) => {
    accept?.();
    void tunnel?.toAgent.push({ frame: { $case: "resize", value: sizeOf(cols, rows) } });
  });
  session.on("env", (accept, reject, { key, val }) => {
    if (!isAllowedVariable(key, val) || variables.size >= MAX_VARIABLES) return reject?.();
    variables.set(key, val);
    return accept?.();
  });
  session.on("signal", (accept, _reject, { name }) => {
    accept?.();
    const character = terminal === undefined ? undefined : TERMINAL_SIGNALS[name];
    if (character !== undefined)
      void tunnel?.toAgent.push({ frame: { $case: "stdin", value: Buffer.from(character) } });
    // The agent kills the command when its session ends.
    else if (name === "KILL" || name === "TERM" || name === "HUP" || name === "INT") tunnel?.toAgent.close();
  });
  session.on("shell", (accept, reject) => run(accept, reject, { type: "shell" }));
  session.on("exec", (accept, reject, { command }) =>
    run(accept, reject, { type: "command", text: command }),
  );
  session.on("subsystem", (accept, reject, { name }) =>
    name === "sftp" ? run(accept, reject, { type: "sftp" }) : reject?.(),
  );
  session.on("close", () => tunnel?.toAgent.close());
}

function sessionKind(
  command: RemoteCommand,
  {
    terminal,
    variables,
  }: { readonly terminal: Terminal | undefined; readonly variables: ReadonlyMap<string, string> },
): PodSessionKind {
  // The agent implements SFTP itself, so images need no sftp-server.
  if (command.type === "sftp") return { $case: "sftp", value: { directory: CONTENT_DIRECTORY } };
  const { term, columns = 0, rows = 0 } = terminal ?? {};
  const value = {
    ...{ command: commandLine(command, { term, variables }), stdin: true, tty: terminal !== undefined },
    size: terminal === undefined ? undefined : { columns, rows },
  };
  return { $case: "exec", value };
}

/** The declared type omits the terminal's name, which the library provides. */
interface PtyInfo {
  readonly cols: number;
  readonly rows: number;
  readonly term?: string;
}

function sizeOf(columns: number, rows: number): Size {
  const bounded = (value: number): number => Math.min(Math.max(value, 1), MAX_COLUMNS);
  return { columns: bounded(columns), rows: bounded(rows) };
}
