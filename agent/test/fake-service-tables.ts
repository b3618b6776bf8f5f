import { CommandFailed, type RunCommand } from "../src/network/run-command.ts";

/** The kernel's table of service rules, which outlives agents. Stores the text that created it. */
export class FakeServiceTables {
  text = "";
  #table = "";
  #marks = new Set<string>();

  reboot(): void {
    this.text = "";
    this.#table = "";
    this.#marks = new Set();
  }

  readonly run: RunCommand = async (file, args, options) => {
    if (file !== "nft") return "";
    if (args[0] === "list") return this.#table;
    const input = options?.input ?? "";
    const [, whole] = /^delete table (ip \S+)$/m.exec(input) ?? [];
    if (whole !== undefined) {
      this.#table = `table ${whole}`;
      this.text = input;
      this.#marks = new Set();
    } else this.text += input;
    for (const [, verb, mark = ""] of input.matchAll(/^(add|delete) chain ip \S+ (made_\S+)$/gm)) {
      if (verb === "delete" && !this.#marks.delete(mark))
        throw new CommandFailed("nft", "", "No such file or directory");
      if (verb === "add") this.#marks.add(mark);
    }
    return "";
  };
}
