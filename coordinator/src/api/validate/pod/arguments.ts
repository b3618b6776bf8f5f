import type { Container } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { lengthProblem, nulProblem } from "../syntax/text.ts";

/**
 * The kernel's limit of one argument or variable: 128 KiB with the terminating NUL. Its limit of 2 MiB for all of them
 * exceeds that of a request.
 */
const MAX_ARGUMENT_BYTES = 131_071;

/** Validates the command, arguments and environment of a container. */
export function validateArguments({ command, args, env }: Container, field: Field): void {
  validateTexts(command, field.at("command"));
  validateTexts(args, field.at("args"));
  for (const [index, { name, valueSource }] of env.entries()) {
    if (valueSource?.$case !== "value") continue;
    field
      .at("env")
      .item(index)
      .at("value")
      .check(argumentProblem(`${name}=${valueSource.value}`));
  }
}

export function argumentProblem(text: string): string | undefined {
  return nulProblem(text) ?? lengthProblem(text, MAX_ARGUMENT_BYTES);
}

/** Validates the command of a probe or hook, which must not be empty. */
export function validateCommand(command: readonly string[], field: Field): void {
  if (command.length === 0 || command[0] === "") field.invalid("must not be empty");
  validateTexts(command, field);
}

function validateTexts(texts: readonly string[], field: Field): void {
  for (const [index, text] of texts.entries()) field.item(index).check(argumentProblem(text));
}
