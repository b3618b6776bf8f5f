/** Parses a host path of a policy, such as `/srv/data` or `/srv/data:ro`. */
export function parseHostPath(text: string): { readonly prefix: string; readonly readOnly: boolean } {
  const readOnly = text.endsWith(":ro");
  return { prefix: readOnly ? text.slice(0, -":ro".length) : text, readOnly };
}
