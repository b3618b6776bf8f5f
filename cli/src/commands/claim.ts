import { Claim } from "@forage/proto/forage/operator/v1/operator";
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

const create = defineCommand({
  name: "create",
  summary: "Create a persistent volume claim",
  details: `A directory on the node of the first pod that has it; it is kept until it is deleted, and its pods stay on that node.`,
  operands: [{ name: "NAME", required: true, help: "its name" }],
  flags: {
    capacity: {
      type: "text",
      hint: "QUANTITY",
      help: "such as 10Gi; without it, only the disk limits it",
    },
    label: OBJECT_LABELS_FLAG,
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { capacity = "", label } = invocation.flags;
    const [name = ""] = invocation.operands;
    const value = Claim.fromPartial({ capacity });
    await putObject(
      context,
      { kind: "claim", name, labels: label },
      { $case: "claim", value },
      { createOnly: true },
    );
    return EXIT.ok;
  },
});

export const claim = groupCommands("claim", "Manage persistent volume claims", [
  create,
  getCommand("claim"),
  listCommand("claim"),
  deleteObjectCommand("claim"),
]);
