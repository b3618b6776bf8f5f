/** Returns a `forage` command for an object in a namespace, which a user can paste. */
export function hint(namespace: string, words: string): string {
  return `forage ${words} -n ${namespace}`;
}
