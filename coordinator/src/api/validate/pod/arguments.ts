import type { Container } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { lengthProblem, nulProblem } from "../syntax/text.ts";

/**
 * The kernel takes 128 KiB for one argument or variable, with the NUL at its end. It takes 2 MiB of them together, which
 * no request is long enough for.
 */
const MAX_ARGUMENT_BYTES = 131_071;

/** Command, arguments and environment, as far as they are what a process is started with. */
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

/** Validates the command of a probe or hook: an empty one would do nothing. */
export function validateCommand(command: readonly string[], field: Field): void {
  if (command.length === 0 || command[0] === "") field.invalid("must not be empty");
  validateTexts(command, field);
}

function validateTexts(texts: readonly string[], field: Field): void {
  for (const [index, text] of texts.entries()) field.item(index).check(argumentProblem(text));
}
