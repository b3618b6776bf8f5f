/**
 * Returns the message of anything thrown: an error's message, or its name if the message is empty, or else the value as
 * text.
 */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
