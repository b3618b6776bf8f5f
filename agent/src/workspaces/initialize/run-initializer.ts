import type { WorkspaceInitializer } from "@forage/proto/content-service-api/initializer";
import { ContentSource, type WorkspaceOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { Initialized, NoteProgress } from "../content-actions.ts";
import { WorkspaceError } from "../workspace-error.ts";
import { cloneRepository, type GitTools } from "./clone-repository.ts";

export interface InitializerTools extends GitTools {}

export interface InitializerTarget {
  /** An empty directory of the unprivileged user. */
  readonly directory: string;
  readonly order: WorkspaceOrder;
  readonly note: NoteProgress;
  readonly signal: AbortSignal;
}

/** Fills a directory as the order's initializer says. Throws a WorkspaceError. */
export async function runInitializer(
  tools: InitializerTools,
  target: InitializerTarget,
): Promise<Initialized> {
  const { initializer } = target.order;
  if (initializer === undefined) throw new WorkspaceError("INVALID", "initializer: it is missing");
  return run(tools, target, initializer);
}

async function run(
  tools: InitializerTools,
  target: InitializerTarget,
  { spec }: WorkspaceInitializer,
): Promise<Initialized> {
  switch (spec?.$case) {
    case "empty":
      return { source: ContentSource.EMPTY, message: "" };
    case "git":
      return {
        source: ContentSource.GIT,
        message: await cloneRepository(tools, target, spec.value),
      };
    case "backup":
      throw new WorkspaceError("FAILED", "initializer: a backup is required, and this workspace has none");
    case "snapshot":
    case "prebuild":
    case "download":
    case "composite":
      throw new WorkspaceError("INVALID", `initializer: ${spec.$case} is not supported by this agent`);
    case undefined:
      throw new WorkspaceError("INVALID", "initializer: it names no kind");
    default:
      return spec satisfies never;
  }
}
