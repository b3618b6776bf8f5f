import { open, rename, rm, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { Backup, CreateBackupResponse } from "@forage/proto/forage/operator/v1/operator";
import { TrailingDigest } from "../backup/trailing-digest.ts";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { contextOf, printListing, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Column } from "../output/table.ts";
import { age } from "../view/timestamp.ts";

const create = defineCommand({
  name: "create",
  summary: "Make a backup of the coordinator's store now",
  details: `The coordinator writes the backup into its directory of backups, reads it back and removes the oldest backups that were made on demand
(backups.keep in its configuration). Scheduled backups stay. Pods and changes continue meanwhile.`,
  run: async (invocation) => {
    const context = contextOf(invocation);
    const made = await withCoordinator(context, (coordinator) => coordinator.call(operator.createBackup, {}));
    const name = made.backup?.name ?? "";
    if (context.format === "name") context.world.stdout.write(`backup/${name}\n`);
    else
      printOne(
        context,
        () => CreateBackupResponse.toJSON(made),
        () =>
          `${name}: ${made.records} records at revision ${made.revision}, verified; to copy it here: forage backup get ${name}\n`,
      );
    return EXIT.ok;
  },
});

const ls = defineCommand({
  name: "ls",
  summary: "List the backups in the coordinator's directory of backups",
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { backups } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listBackups, {}),
    );
    printListing(context, {
      columns: columns(context.world.nowMs()),
      rows: backups,
      json: Backup.toJSON,
      name: ({ name }) => `backup/${name}`,
      none: "there are no backups; to make one: forage backup create",
    });
    return EXIT.ok;
  },
});

const get = defineCommand({
  name: "get",
  summary: "Copy a backup to this machine and verify it",
  details: `FILE is NAME in the current directory by default, is readable by its owner only, and must not exist. A copy that fails or differs leaves no file.
A backup holds no keys: a restore on another machine also needs the directories authority and keys of the coordinator's data directory.`,
  operands: [
    { name: "NAME", required: true, help: "a name that `forage backup ls` prints" },
    { name: "FILE", required: false, help: "where to write it" },
  ],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [given = "", file] = invocation.operands;
    const name = given.replace(/^backup\//, "");
    // A name of a backup contains no slash, so that it can't lead out of the current directory.
    if (name.includes("/")) throw new CliError("USAGE", `"${given}" is not the name of a backup`);
    const path = resolve(file ?? name);
    const bytes = await withCoordinator(context, (coordinator) => download(coordinator, name, path));
    context.world.stdout.write(`${path}: ${bytes} bytes, verified\n`);
    return EXIT.ok;
  },
});

export const backup = groupCommands("backup", "Make, list and copy backups of the coordinator's store", [
  create,
  ls,
  get,
]);

/**
 * Writes the backup to a partial file, which is renamed to `path` once it is verified. Returns its
 * size.
 */
async function download(coordinator: Coordinator, name: string, path: string): Promise<number> {
  if (await exists(path)) throw new CliError("USAGE", `${path} exists: name another file`);
  const partial = `${path}.partial`;
  const file = await open(partial, "wx", 0o600).catch((cause: unknown) => {
    const why = isPresent(cause)
      ? "exists: remove it unless another copy is in progress"
      : "can't be created";
    throw new CliError("USAGE", `${partial} ${why}`, { cause });
  });
  try {
    const digest = new TrailingDigest();
    let bytes = 0;
    for await (const { frame } of coordinator.stream(operator.getBackup, { name })) {
      if (frame?.$case !== "data") continue;
      digest.update(frame.value);
      bytes += frame.value.length;
      await file.writeFile(frame.value);
    }
    if (!digest.matches())
      throw new CliError("REFUSED", `the backup ${name} is damaged or was cut off: choose another one`);
    await file.sync();
    await rename(partial, path);
    return bytes;
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

function columns(nowMs: number): Column<Backup>[] {
  return [
    { title: "NAME", value: ({ name }) => name },
    { title: "AGE", value: ({ madeAt }) => age(madeAt, nowMs), alignRight: true },
    { title: "BYTES", value: ({ sizeBytes }) => String(sizeBytes), alignRight: true },
    { title: "MADE", value: ({ scheduled }) => (scheduled ? "by schedule" : "on demand") },
  ];
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function isPresent(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}
