import { open, rm } from "node:fs/promises";
import {
  type ListContentResponse,
  NodeContent,
  StoredArchive,
  WorkspaceContentServiceService,
} from "@forage/proto/forage/workspaces/v1/content";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { archiveColumns, contentColumns } from "../view/workspace-content.ts";
import { confirm } from "./confirm.ts";

const INSTANCE = { name: "INSTANCE", required: true, help: "instance id of the workspace" } as const;
const FILTERS = {
  owner: { type: "text", hint: "OWNER", help: "only content of the owner" },
  workspace: { type: "text", hint: "META_ID", help: "only content of the workspace" },
} as const;

const ls = defineCommand({
  name: "ls",
  summary: "List the content of workspaces on nodes",
  details:
    "Content in the state Kept could not be saved. It stays on its node until `forage workspace content retry INSTANCE` or `forage workspace content discard INSTANCE`.",
  flags: FILTERS,
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { onNodes } = await contents(context, invocation.flags);
    printListing(context, {
      columns: contentColumns(),
      rows: [...onNodes].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1)),
      json: NodeContent.toJSON,
      name: ({ instanceId }) => instanceId,
      none: "no content on nodes",
    });
    return EXIT.ok;
  },
});

const archives = defineCommand({
  name: "archives",
  summary: "List backups and snapshots of workspaces",
  flags: FILTERS,
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { stored } = await contents(context, invocation.flags);
    printListing(context, {
      columns: archiveColumns(context.world.nowMs()),
      rows: stored,
      json: StoredArchive.toJSON,
      name: ({ url }) => url,
      none: "no backups and snapshots",
    });
    return EXIT.ok;
  },
});

const retry = defineCommand({
  name: "retry",
  summary: "Try again to save content that stays on its node",
  details: "Fix the cause first. The content becomes one of the backups of its workspace, by its age.",
  operands: [INSTANCE],
  flags: {},
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [instanceId = ""] = invocation.operands;
    const method = WorkspaceContentServiceService.retryContent;
    await withCoordinator(context, (coordinator) => coordinator.call(method, { instanceId }));
    context.world.stdout.write(`the content of ${instanceId} is being saved\n`);
    return EXIT.ok;
  },
});

const discard = defineCommand({
  name: "discard",
  summary: "Delete content that is not saved",
  details: "The content can't be restored. Content that is in use or saved is not deleted.",
  operands: [INSTANCE],
  flags: { yes: { type: "switch", short: "y", help: "don't ask" } },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [instanceId = ""] = invocation.operands;
    const question = `Delete the unsaved content of workspace instance ${instanceId} of ${context.settings.place()}? [y/N] `;
    if (!invocation.flags.yes && !(await confirm(context, question))) return EXIT.failed;
    const method = WorkspaceContentServiceService.discardContent;
    await withCoordinator(context, (coordinator) => coordinator.call(method, { instanceId }));
    context.world.stdout.write(`the content of ${instanceId} is being deleted\n`);
    return EXIT.ok;
  },
});

const download = defineCommand({
  name: "download",
  summary: "Download content as a tar archive that is compressed with zstd",
  details:
    "SOURCE is an instance id, whose content is read on its node, or the URL of a backup or snapshot. A download that fails leaves no file.",
  operands: [{ name: "SOURCE", required: true, help: "instance id, or URL of a backup or snapshot" }],
  flags: { output: { type: "text", hint: "FILE", help: "where to write the archive; it must not exist" } },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { output } = invocation.flags;
    if (output === undefined) throw new CliError("USAGE", "--output must name the file to write");
    const [source = ""] = invocation.operands;
    const of = source.includes("@")
      ? ({ $case: "url", value: source } as const)
      : ({ $case: "instanceId", value: source } as const);
    const file = await open(output, "wx", 0o600).catch((cause: unknown) => {
      throw new CliError("USAGE", `--output ${output} can't be created`, { cause });
    });
    try {
      await withCoordinator(context, async (coordinator) => {
        const method = WorkspaceContentServiceService.downloadContent;
        for await (const { data } of coordinator.stream(method, { of })) await file.writeFile(data);
      });
      await file.sync();
    } catch (error) {
      await rm(output, { force: true });
      throw error;
    } finally {
      await file.close();
    }
    return EXIT.ok;
  },
});

export const content = groupCommands("content", "List, download, save and discard content of workspaces", [
  ls,
  archives,
  download,
  retry,
  discard,
]);

function contents(
  context: Parameters<typeof withCoordinator>[0],
  {
    owner = "",
    workspace = "",
  }: { readonly owner?: string | undefined; readonly workspace?: string | undefined },
): Promise<ListContentResponse> {
  const method = WorkspaceContentServiceService.listContent;
  return withCoordinator(context, (coordinator) => coordinator.call(method, { owner, metaId: workspace }));
}
