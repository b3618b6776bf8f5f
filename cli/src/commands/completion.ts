import { type Command, defineCommand } from "../command/definition.ts";
import { bashScript } from "../completion/bash.ts";
import { type CommandCompletion, describeCommands } from "../completion/describe-commands.ts";
import { fishScript } from "../completion/fish.ts";
import { zshScript } from "../completion/zsh.ts";
import { EXIT } from "../exit-code.ts";

const scripts: Readonly<Record<string, (places: readonly CommandCompletion[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/**
 * Returns the command that prints completion scripts. `load` returns all commands, including this
 * one.
 */
export function completionCommand(load: () => Promise<Command>): Command {
  return defineCommand({
    name: "completion",
    summary: "Print a script that completes commands in a shell",
    details: `For this session: source <(forage completion bash)`,
    operands: [{ name: "SHELL", required: true, choices: Object.keys(scripts), help: "which shell" }],
    run: async ({ operands: [shell = ""], world }) => {
      world.stdout.write(scripts[shell]?.(describeCommands(await load())) ?? "");
      return EXIT.ok;
    },
  });
}
