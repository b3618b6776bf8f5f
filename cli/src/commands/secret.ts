import { operator } from "../client/coordinator.ts";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { write } from "../session/write.ts";
import {
  deleteObjectCommand,
  listCommand,
  OBJECT_LABELS_FLAG,
  putObject,
  showObject,
} from "./object-commands.ts";
import { FILE_FLAGS, readData } from "./object-data.ts";

const set = defineCommand({
  name: "set",
  summary: "Create a secret, or replace all of its values",
  details: `Values come from files or standard input: what stands in a command line can be read by everyone on the machine.
Pods that have it as a volume see the new values at once; those that have it in their environment are replaced.`,
  operands: [{ name: "NAME", required: true, help: "its name" }],
  flags: { ...FILE_FLAGS, label: OBJECT_LABELS_FLAG },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags } = invocation;
    const [name = ""] = invocation.operands;
    const value = { data: await readData(flags, context.world), sizes: {} };
    await putObject(context, { kind: "secret", name, labels: flags.label }, { $case: "secret", value });
    return EXIT.ok;
  },
});

const get = defineCommand({
  name: "get",
  summary: "Show a secret: its keys and their sizes",
  operands: [{ name: "NAME", required: true, help: "its name" }],
  flags: {
    "show-values": { type: "switch", help: "show the values as well" },
    key: { type: "text", hint: "KEY", help: "print the value of this key, byte by byte, and nothing else" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { key, "show-values": reveal } = invocation.flags;
    const [name = ""] = invocation.operands;
    await withCoordinator(context, async (coordinator) => {
      if (key === undefined) return showObject(context, coordinator, "secret", name, { reveal });
      const { namespace } = context.settings;
      const { object } = await coordinator.call(operator.revealObject, { namespace, kind: "secret", name });
      const data = object?.spec?.$case === "secret" ? object.spec.value.data : {};
      const value = Object.hasOwn(data, key) ? data[key] : undefined;
      if (value === undefined)
        throw new CliError(
          "NOT_FOUND",
          `secret "${name}" has no key "${key}"; it has ${Object.keys(data).join(", ")}`,
        );
      await write(context.world.stdout, value, context.signal);
    });
    return EXIT.ok;
  },
});

export const secret = groupCommands("secret", "Manage secrets", [
  set,
  get,
  listCommand("secret"),
  deleteObjectCommand("secret"),
]);
