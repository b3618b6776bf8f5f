import type { ExecOptions, SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import type { RuntimeExec, RuntimeExecOptions } from "../runtime/runtime.ts";
import type { Session } from "./session.ts";

export type RunExec = (id: string, options: RuntimeExecOptions, signal: AbortSignal) => RuntimeExec;

/** Runs a command in the container. The command ends when the client disconnects. */
export async function serveExec(
  session: Session,
  { command, stdin, tty, size }: ExecOptions,
  run: RunExec,
): Promise<SessionEnd> {
  const { found, writer, signal } = session;
  if (found.id === undefined) throw new Error(`container ${found.container} is not running`);
  const options = { command, stdin, tty, ...(size && { columns: size.columns, rows: size.rows }) };
  const exec = run(found.id, options, signal);
  session.readInput({
    data: (data) => exec.write(data),
    closed: () => exec.endInput(),
    resize: (columns, rows) => exec.resize(columns, rows),
  });
  for await (const { stream, data } of exec.output) await writer.data(stream, data);
  return { exitCode: await exec.exitCode, error: "" };
}
