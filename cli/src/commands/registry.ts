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
import { readBytes } from "./object-data.ts";

const set = defineCommand({
  name: "set",
  summary: "Create or replace the credentials for a registry",
  details: `Pods name them in pod_config.image_pull_secrets.`,
  operands: [
    { name: "NAME", required: true, help: "its name" },
    {
      name: "SERVER",
      required: true,
      help: "host and port of the registry as images name it; docker.io for images that name none",
    },
  ],
  flags: {
    username: { type: "text", hint: "NAME", help: "user of the registry" },
    "password-stdin": { type: "switch", help: "read the password, or a token, from standard input" },
    "password-file": { type: "text", hint: "FILE", help: "read the password from a file" },
    label: OBJECT_LABELS_FLAG,
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { username, label, ...from } = invocation.flags;
    const [name = "", server = ""] = invocation.operands;
    if (username === undefined) throw new CliError("USAGE", "--username is missing");
    const file = from["password-file"];
    if ((file !== undefined) === from["password-stdin"])
      throw new CliError("USAGE", "give exactly one of --password-stdin and --password-file");
    const text = (await readBytes(file ?? "-", context.world.stdin)).toString();
    const password = text.replace(/\r?\n$/, "");
    if (password === "") throw new CliError("USAGE", "the password is empty");
    await putObject(
      context,
      { kind: "registry_credential", name, labels: label },
      { $case: "registryCredential", value: { server, username, password } },
    );
    return EXIT.ok;
  },
});

export const registry = groupCommands("registry", "Manage credentials for registries", [
  set,
  getCommand("registry_credential"),
  listCommand("registry_credential"),
  deleteObjectCommand("registry_credential"),
]);
