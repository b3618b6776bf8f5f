/** Returns a `forage` command about something of a namespace, to be pasted as it stands. */
export function hint(namespace: string, words: string): string {
  return `forage ${words} -n ${namespace}`;
}
