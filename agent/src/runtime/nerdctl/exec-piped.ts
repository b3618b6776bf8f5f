import { RuntimeError } from "../runtime.ts";
import type { ExecOutput } from "./exec-output.ts";
import type { ExecProcess } from "./exec-process.ts";
import { FinalMessageFilter } from "./exec-result.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";

/**
 * Starts an exec with pipes. nerdctl's own last message arrives on the command's standard error and is removed from it.
 */
export function startPiped(
  cli: NerdctlCli,
  args: readonly string[],
  stdin: boolean,
  output: ExecOutput,
): ExecProcess {
  const child = cli.spawn(args, { stdin });
  const words = new FinalMessageFilter();
  child.stdout.on("data", (chunk: Buffer) => output.push("stdout", chunk));
  child.stderr.on("data", (chunk: Buffer) => output.push("stderr", words.push(chunk)));
  output.attach([child.stdout, child.stderr]);
  const ended = child.ended.then((result) => {
    const last = words.end(result.exitCode);
    output.push("stderr", last.rest);
    return { exitCode: result.exitCode, lastWords: last.words };
  });
  return {
    ended,
    write: (data) => write(child.stdin, data),
    endInput: () => void child.stdin?.end(),
    resize: () => undefined,
    kill: () => void child.kill("SIGKILL"),
  };
}

function write(stdin: NodeJS.WritableStream | undefined, data: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (cause?: unknown) =>
      reject(new RuntimeError("UNKNOWN", "the command no longer reads", { retryable: false, cause }));
    if (stdin?.writable !== true) refuse();
    else stdin.write(data, (error) => (error ? refuse(error) : resolve()));
  });
}
