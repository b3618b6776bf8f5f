export interface EnvValue {
  readonly name: string;
  readonly value: string;
}

export interface UnexpandedEnv extends EnvValue {
  /** Set for values from a secret, a config map or a field. They are not expanded, as in Kubernetes. */
  readonly literal?: true;
}

/**
 * Expands references as Kubernetes does: `$(NAME)` becomes the variable's value, and `$$` becomes one dollar sign, so
 * `$$(NAME)` stays `$(NAME)`. A reference to an undefined variable stays as written.
 */
export function expand(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(/\$\$|\$\(([^)]*)\)/g, (whole, name: string | undefined) => {
    if (name === undefined) return "$";
    return values.get(name) ?? whole;
  });
}

/** Expands each value with the variables defined before it. If a name is defined twice, the last definition wins. */
export function expandEnv(env: readonly UnexpandedEnv[]): readonly EnvValue[] {
  const values = new Map<string, string>();
  for (const { name, value, literal } of env) {
    const expanded = literal ? value : expand(value, values);
    // Delete the earlier definition first, so that the entry has the position of the last definition.
    values.delete(name);
    values.set(name, expanded);
  }
  return [...values].map(([name, value]) => ({ name, value }));
}
