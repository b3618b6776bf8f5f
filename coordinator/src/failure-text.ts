import { messageOf } from "@forage/common/message-of";

/**
 * Describes why the program ends, for the user who started it: the messages of the error and of its
 * causes. At detailed log levels, the stack is added for developers.
 */
export function failureText(error: unknown, logLevel: string | undefined): string {
  if (!(error instanceof Error)) return String(error);
  const detailed = logLevel === "debug" || logLevel === "trace";
  if (detailed && error.stack !== undefined) return error.stack;
  const messages: string[] = [];
  for (
    let cause: unknown = error;
    cause instanceof Error && messages.length < MAX_CAUSES;
    cause = cause.cause
  ) {
    if (!messages.some((message) => message.includes(messageOf(cause)))) messages.push(messageOf(cause));
  }
  return messages.join(": ");
}

/** The most causes shown. A longer chain is a cycle, or does not help the reader. */
const MAX_CAUSES = 5;
