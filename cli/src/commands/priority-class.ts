import { defineCommand, groupCommands } from "../command/definition.ts";
import { contextOf } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import {
  deleteObjectCommand,
  getCommand,
  listCommand,
  OBJECT_LABELS_FLAG,
  putObject,
} from "./object-commands.ts";

const set = defineCommand({
  name: "set",
  summary: "Create a priority class, or change all but its value",
  operands: [{ name: "NAME", required: true, help: "its name" }],
  flags: {
    value: { type: "text", hint: "NUMBER", help: "the greater, the more important; can't be changed" },
    "never-preempts": { type: "switch", help: "its pods wait for room and never preempt others" },
    "global-default": { type: "switch", help: "for pods that name no class" },
    description: { type: "text", hint: "TEXT", help: "what it is for" },
    label: OBJECT_LABELS_FLAG,
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags } = invocation;
    const [name = ""] = invocation.operands;
    if (flags.value === undefined || !/^-?\d{1,10}$/.test(flags.value))
      throw new CliError("USAGE", "--value is a whole number; negative ones are written --value=-1");
    const value = {
      value: Number(flags.value),
      neverPreempts: flags["never-preempts"],
      globalDefault: flags["global-default"],
      description: flags.description ?? "",
    };
    await putObject(
      context,
      { kind: "priority_class", name, labels: flags.label },
      { $case: "priorityClass", value },
    );
    return EXIT.ok;
  },
});

export const priorityClass = groupCommands("priority-class", "Manage priority classes", [
  set,
  getCommand("priority_class"),
  listCommand("priority_class"),
  deleteObjectCommand("priority_class"),
]);
