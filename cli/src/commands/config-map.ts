import { defineCommand, groupCommands } from "../command/definition.ts";
import { contextOf } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import {
  deleteObjectCommand,
  getCommand,
  listCommand,
  OBJECT_LABELS_FLAG,
  putObject,
} from "./object-commands.ts";
import { FILE_FLAGS, LITERAL_FLAG, readData } from "./object-data.ts";

const set = defineCommand({
  name: "set",
  summary: "Create a config map, or replace all of its values",
  details: `Pods that have it as a volume see the new values at once; those that have it in their environment are replaced.`,
  operands: [{ name: "NAME", required: true, help: "its name" }],
  flags: { ...LITERAL_FLAG, ...FILE_FLAGS, label: OBJECT_LABELS_FLAG },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags } = invocation;
    const [name = ""] = invocation.operands;
    const value = { data: await readData(flags, context.world), sizes: {} };
    await putObject(
      context,
      { kind: "config_map", name, labels: flags.label },
      { $case: "configMap", value },
    );
    return EXIT.ok;
  },
});

export const config = groupCommands("config", "Manage config maps", [
  set,
  getCommand("config_map"),
  listCommand("config_map"),
  deleteObjectCommand("config_map"),
]);
