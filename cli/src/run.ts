import type { Writable } from "node:stream";
import { messageOf } from "@forage/common/message-of";
import type { Command } from "./command/definition.ts";
import { type ParsedLine, parseLine } from "./command/parse.ts";
import { renderUsage } from "./command/usage.ts";
import { timeoutOf } from "./duration-flag.ts";
import { CliError } from "./errors.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { plainText } from "./output/plain-text.ts";
import { withTimeLimit } from "./time-limit.ts";
import type { World } from "./world.ts";

/**
 * Runs one command line, and resolves with the exit code once all output was written. Never
 * rejects: failures are printed to standard error. Resources that the command has left open can
 * keep the process alive, so the caller must exit.
 */
export async function run(root: Command, argv: readonly string[], world: World): Promise<ExitCode> {
  try {
    const line = parseLine(root, argv);
    const limits = { interrupted: world.interrupted, timeoutMs: timeoutOf(line.flags.timeout) };
    return await withTimeLimit(limits, async (signal) => {
      const exitCode = await start(line, argv.length === 0, { ...world, interrupted: signal });
      await written(world.stdout);
      if (signal.aborted) throw signal.reason;
      return exitCode;
    });
  } catch (error) {
    return report(error, world);
  }
}

async function start(
  { command, path, flags, operands, afterDashes }: ParsedLine,
  isBare: boolean,
  world: World,
): Promise<ExitCode> {
  if (flags.help === true || command.run === undefined) {
    const asked = flags.help === true || isBare;
    (asked ? world.stdout : world.stderr).write(renderUsage(path));
    return asked ? EXIT.ok : EXIT.failed;
  }
  // The parser has set every declared flag to a value of its type.
  return command.run({ flags: flags as never, operands, afterDashes, world });
}

/**
 * Resolves when the stream has written everything, or has failed, which its error event reports.
 */
function written(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    stream.write("", (error) => (error ? setImmediate(resolve) : resolve()));
  });
}

function report(error: unknown, { stderr, env }: World): ExitCode {
  if (error instanceof CliError) {
    if (error.code !== "OUTPUT_CLOSED")
      stderr.write(`forage: ${plainText(error.message, { lines: true })}\n`);
    return error.exitCode;
  }
  const text = messageOf(error);
  stderr.write(`forage: internal error: ${plainText(text)}; FORAGE_DEBUG=1 shows where\n`);
  if (env.FORAGE_DEBUG === "1" && error instanceof Error) stderr.write(`${error.stack}\n`);
  return EXIT.failed;
}
