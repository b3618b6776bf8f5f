import type { Field } from "../conversion/field.ts";
import { cpuQuantity, memoryQuantity, wholeSeconds } from "./amounts.ts";

/** Reads a number of cores as a quantity. Reports other values. */
export function cpu(field: Field): string | undefined {
  return cpuQuantity(field.text()) ?? field.fail("must be a number of cores, such as 0.5");
}

/** Reads an amount of bytes as a quantity. Reports other values. */
export function memory(field: Field): string | undefined {
  return memoryQuantity(field.text()) ?? field.fail("must be an amount such as 512m");
}

/** Reads a duration as whole seconds. Reports other values. */
export function seconds(field: Field): number | undefined {
  return wholeSeconds(field.text()) ?? field.fail("must be a duration such as 1m30s");
}

/** Reads a list of texts, or a single text. */
export function texts(field: Field): readonly string[] {
  return field.oneOrMore().map((item) => item.text());
}

/** Reads the pairs of a mapping, or of a list of `KEY=VALUE`. */
export function pairs(
  field: Field,
): readonly (readonly [key: string, value: string | undefined, at: Field])[] {
  if (field.kind !== "list")
    return field.entries().map(([key, item]) => [key, item.kind === "null" ? undefined : item.text(), item]);
  return field.items().map((item) => {
    const text = item.text();
    const split = text.indexOf("=");
    return split === -1 ? [text, undefined, item] : [text.slice(0, split), text.slice(split + 1), item];
  });
}

/** Calls the reader of each field of a mapping. Reports fields without a reader. */
export function eachField(field: Field, readers: Readonly<Record<string, (value: Field) => void>>): void {
  for (const [name, value] of field.entries()) {
    if (name.startsWith("x-") || value.kind === "null") continue;
    if (Object.hasOwn(readers, name)) readers[name]?.(value);
    else value.fail("is an unknown field");
  }
}

/** Returns a reader that reports a loss with the reason. */
export function losing(reason: string): (field: Field) => void {
  return (field) => field.lose(reason);
}
