import { type Command, defineCommand, isNamed } from "../command/definition.ts";
import { didYouMean } from "../command/suggest.ts";
import { renderUsage } from "../command/usage.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";

/** Returns the help command. `load` returns all commands, including this one. */
export function helpCommand(load: () => Promise<Command>): Command {
  return defineCommand({
    name: "help",
    summary: "Show the help of a command",
    operands: [{ name: "COMMAND", repeated: true, help: "which; all by default" }],
    run: async ({ operands, world }) => {
      const path = [await load()];
      for (const word of operands) {
        const subcommands = path.at(-1)?.subcommands ?? [];
        const next = subcommands.find((command) => isNamed(command, word));
        if (next === undefined) {
          const names = subcommands.map(({ name }) => name);
          throw new CliError("USAGE", `there is no command "${word}"${didYouMean(word, names)}`);
        }
        path.push(next);
      }
      world.stdout.write(renderUsage(path));
      return EXIT.ok;
    },
  });
}
