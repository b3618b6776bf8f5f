import { StartWorkspaceRequest, WorkspaceManagerService } from "@forage/proto/core";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";

/** The annotation that selects an older backup. */
const GENERATION_ANNOTATION = "forage.dev/backup-generation";

export const start = defineCommand({
  name: "start",
  summary: "Start a workspace",
  details: `INSTANCE is new for each start. The content comes from the newest backup of the workspace, if there is one, else from --git or --snapshot,
else it is empty. The command returns once the workspace has a URL; \`forage workspace ls\` shows when it runs.`,
  operands: [
    { name: "INSTANCE", required: true, help: "a new instance id: lowercase letters, digits and -" },
  ],
  flags: {
    image: { type: "text", hint: "IMAGE", help: "image of the workspace's container" },
    workspace: {
      type: "text",
      hint: "META_ID",
      help: "the workspace, whose backups belong to it; INSTANCE by default",
    },
    owner: { type: "text", hint: "OWNER", help: 'owner of the workspace; the default is "forage"' },
    class: {
      type: "text",
      hint: "CLASS",
      help: "size of the workspace; the coordinator's first class by default",
    },
    git: { type: "text", hint: "URL", help: "clone this repository" },
    snapshot: { type: "text", hint: "URL", help: "begin with the snapshot" },
    "idle-timeout": {
      type: "text",
      hint: "DURATION",
      help: "stop after so long without activity, such as 1h30m",
    },
    "backup-generation": {
      type: "text",
      hint: "NUMBER",
      help: "restore an older backup: 1 is the one before the newest",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [id = ""] = invocation.operands;
    const request = requestOf(id, invocation.flags);
    await withCoordinator(context, async (coordinator) => {
      const { url } = await coordinator.call(WorkspaceManagerService.startWorkspace, request);
      printOne(
        context,
        () => ({ id, url }),
        () => `${url}\n`,
      );
    });
    return EXIT.ok;
  },
});

interface StartFlags {
  readonly image?: string | undefined;
  readonly workspace?: string | undefined;
  readonly owner?: string | undefined;
  readonly class?: string | undefined;
  readonly git?: string | undefined;
  readonly snapshot?: string | undefined;
  readonly "idle-timeout"?: string | undefined;
  readonly "backup-generation"?: string | undefined;
}

/** Builds the request from the flags. */
function requestOf(id: string, flags: StartFlags): StartWorkspaceRequest {
  const { image, workspace = id, owner = "forage", git, snapshot } = flags;
  if (image === undefined)
    throw new CliError("USAGE", "--image must name the image of the workspace's container");
  if (git !== undefined && snapshot !== undefined)
    throw new CliError("USAGE", "--git and --snapshot contradict each other");
  const generation = flags["backup-generation"];
  return StartWorkspaceRequest.fromPartial({
    id,
    servicePrefix: id,
    metadata: {
      owner,
      metaId: workspace,
      annotations: generation === undefined ? {} : { [GENERATION_ANNOTATION]: generation },
    },
    spec: {
      workspaceImage: image,
      workspaceLocation: "/workspace",
      class: flags.class ?? "",
      timeout: flags["idle-timeout"] ?? "",
      initializer: initializerOf(git, snapshot),
    },
  });
}

type Initializer = NonNullable<
  NonNullable<Parameters<typeof StartWorkspaceRequest.fromPartial>[0]["spec"]>["initializer"]
>;

function initializerOf(git: string | undefined, snapshot: string | undefined): Initializer {
  if (git !== undefined) return { spec: { $case: "git", value: { remoteUri: git, config: {} } } };
  if (snapshot !== undefined) return { spec: { $case: "snapshot", value: { snapshot } } };
  return { spec: { $case: "empty", value: {} } };
}
