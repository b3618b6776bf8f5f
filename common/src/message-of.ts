/** Returns the message of anything that was thrown: that of an error, its name if the message is empty, else the value as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
