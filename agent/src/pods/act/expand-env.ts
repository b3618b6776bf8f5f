export interface EnvValue {
  readonly name: string;
  readonly value: string;
}

export interface UnexpandedEnv extends EnvValue {
  /** Set for values from a secret, a config map or a field: they are used as they are, as in Kubernetes. */
  readonly literal?: true;
}

/**
 * Kubernetes' expansion: `$(NAME)` becomes the variable's value, `$$` one dollar sign (so `$$(NAME)` stays `$(NAME)`),
 * and a reference to a variable that isn't defined stays as it is written.
 */
export function expand(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(/\$\$|\$\(([^)]*)\)/g, (whole, name: string | undefined) => {
    if (name === undefined) return "$";
    return values.get(name) ?? whole;
  });
}

/** Expands each value with the variables defined before it; of two with one name, the last wins. */
export function expandEnv(env: readonly UnexpandedEnv[]): readonly EnvValue[] {
  const values = new Map<string, string>();
  for (const { name, value, literal } of env) {
    const expanded = literal ? value : expand(value, values);
    // Deleted first, so that the winner stands where it was written last.
    values.delete(name);
    values.set(name, expanded);
  }
  return [...values].map(([name, value]) => ({ name, value }));
}
