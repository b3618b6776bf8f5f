/** All of them, the one that it goes by first; those who have one only may tell no others. */
export function allAddresses(first: string, all: readonly string[] = []): string {
  return [...new Set([first, ...all])].filter((it) => it !== "").join(", ");
}
