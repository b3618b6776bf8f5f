/**
 * Returns all addresses separated by commas, the primary one first. Objects with one address may
 * leave the list empty.
 */
export function allAddresses(first: string, all: readonly string[] = []): string {
  return [...new Set([first, ...all])].filter((it) => it !== "").join(", ");
}
