/* Readers of single settings: each gives the value, or throws an Error that says what it must be. */

export function wholeNumber(min: number, max: number) {
  return (value: unknown): number => {
    const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
    if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max)
      return number;
    throw new Error(`a whole number from ${min} to ${max}`);
  };
}

export function matching(pattern: RegExp, what: string) {
  return (value: unknown): string => {
    if (typeof value === "string" && pattern.test(value)) return value;
    throw new Error(what);
  };
}

export function onOrOff(value: unknown): boolean {
  if (value === true || value === "on") return true;
  // YAML takes a bare `off` for a word, and some write it as a truth value.
  if (value === false || value === "off") return false;
  throw new Error("on or off");
}

export function oneOf<const Value extends string>(allowed: readonly Value[]) {
  return (value: unknown): Value => {
    const found = allowed.find((it) => it === value);
    if (found !== undefined) return found;
    throw new Error(`one of ${allowed.join(", ")}`);
  };
}
