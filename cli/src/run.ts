import type { Command } from "./command/definition.ts";
import { parseLine } from "./command/parse.ts";
import { renderUsage } from "./command/usage.ts";
import { CliError } from "./errors.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { plainText } from "./output/plain-text.ts";
import type { World } from "./world.ts";

/** Runs one command line. Never throws: what goes wrong is told on standard error and by the exit code. */
export async function run(root: Command, argv: readonly string[], world: World): Promise<ExitCode> {
  try {
    const { command, path, flags, operands, afterDashes } = parseLine(root, argv);
    if (flags.help === true || command.run === undefined) {
      const asked = flags.help === true || (command === root && argv.length === 0);
      (asked ? world.stdout : world.stderr).write(renderUsage(path));
      return asked ? EXIT.ok : EXIT.failed;
    }
    // The parser has given every declared flag a value of its kind.
    return await command.run({ flags: flags as never, operands, afterDashes, world });
  } catch (error) {
    return report(error, world);
  }
}

function report(error: unknown, { stderr, env }: World): ExitCode {
  if (error instanceof CliError) {
    if (error.code !== "OUTPUT_CLOSED")
      stderr.write(`forage: ${plainText(error.message, { lines: true })}\n`);
    return error.exitCode;
  }
  const text = error instanceof Error ? error.message : String(error);
  stderr.write(`forage: internal error: ${plainText(text)}; FORAGE_DEBUG=1 shows where\n`);
  if (env.FORAGE_DEBUG === "1" && error instanceof Error) stderr.write(`${error.stack}\n`);
  return EXIT.failed;
}
