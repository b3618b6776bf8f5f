import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";

/**
 * Runs a command for which exit code 1 is an answer. Failures exit with 255, so that scripts can
 * distinguish them.
 */
export async function answerByExitCode(run: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.failed) throw error;
    throw new CliError(error.code, error.message, { cause: error, exitCode: EXIT.planFailed });
  }
}
