import { readdir } from "node:fs/promises";
import type {
  PrebuildInitializer,
  SnapshotInitializer,
  WorkspaceInitializer,
} from "@forage/proto/content-service-api/initializer";
import {
  type Archive,
  ContentSource,
  type WorkspaceOrder,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import type { Initialized, NoteProgress } from "../content-actions.ts";
import { WorkspaceError } from "../workspace-error.ts";
import { cloneRepository, type GitTools } from "./clone-repository.ts";
import { downloadFiles } from "./download-files.ts";
import { updateWorkingCopy } from "./update-working-copy.ts";

export interface InitializerTools extends GitTools {
  /** Unpacks an archive of the content store into an empty directory. */
  readonly restore: (archive: Archive, target: InitializerTarget) => Promise<void>;
  /** Empties a directory. */
  readonly clear: (directory: string, signal: AbortSignal) => Promise<void>;
}

export interface InitializerTarget {
  /** A directory that the unprivileged user owns. It is empty when the first initializer starts. */
  readonly directory: string;
  readonly order: WorkspaceOrder;
  readonly note: NoteProgress;
  readonly signal: AbortSignal;
}

// Clients don't nest this deeply. The limit bounds the recursion.
const DEPTH_MAX = 8;
const PARTS_MAX = 100;

/** Fills a directory as the order's initializer specifies. Throws a WorkspaceError. */
export async function runInitializer(
  tools: InitializerTools,
  target: InitializerTarget,
): Promise<Initialized> {
  const { initializer } = target.order;
  if (initializer === undefined) throw new WorkspaceError("INVALID", "initializer: it is missing");
  return run(tools, target, initializer, 0);
}

async function run(
  tools: InitializerTools,
  target: InitializerTarget,
  { spec }: WorkspaceInitializer,
  depth: number,
): Promise<Initialized> {
  if (depth > DEPTH_MAX)
    throw new WorkspaceError("INVALID", `initializer: composites are nested more than ${DEPTH_MAX} deep`);
  switch (spec?.$case) {
    case "empty":
      return { source: ContentSource.EMPTY, message: "" };
    case "git":
      return { source: ContentSource.GIT, message: await cloneRepository(tools, target, spec.value) };
    case "download":
      await downloadFiles(tools.refuse, target, spec.value);
      return { source: ContentSource.DOWNLOAD, message: "" };
    case "snapshot":
      await restoreSnapshot(tools, target, spec.value);
      return { source: ContentSource.SNAPSHOT, message: "" };
    case "prebuild":
      return await runPrebuild(tools, target, spec.value);
    case "composite": {
      const parts = spec.value.initializer;
      if (parts.length > PARTS_MAX)
        throw new WorkspaceError(
          "INVALID",
          `composite: ${parts.length} parts, at most ${PARTS_MAX} are allowed`,
        );
      const messages: string[] = [];
      for (const part of parts) messages.push((await run(tools, target, part, depth + 1)).message);
      return { source: ContentSource.COMPOSITE, message: joined(messages) };
    }
    case "backup":
      throw new WorkspaceError("FAILED", "initializer: a backup is required, and this workspace has none");
    case undefined:
      throw new WorkspaceError("INVALID", "initializer: it names no kind");
    default:
      return spec satisfies never;
  }
}

async function restoreSnapshot(
  tools: InitializerTools,
  target: InitializerTarget,
  { snapshot, fromVolumeSnapshot }: SnapshotInitializer,
): Promise<void> {
  if (fromVolumeSnapshot)
    throw new WorkspaceError("INVALID", "snapshot.from_volume_snapshot: this host has no volume snapshots");
  const archive = target.order.archives[snapshot];
  if (archive === undefined)
    throw new WorkspaceError("FAILED", "snapshot: the content store has no such snapshot");
  // Existing links could redirect the archive's files.
  if ((await readdir(target.directory)).length > 0)
    throw new WorkspaceError("INVALID", "composite: a snapshot must be its first part");
  await tools.restore(archive, target);
}

/**
 * Fills the directory from a prebuild. Without a usable snapshot the repositories are cloned; otherwise they are
 * updated.
 */
async function runPrebuild(
  tools: InitializerTools,
  target: InitializerTarget,
  { prebuild, git }: PrebuildInitializer,
): Promise<Initialized> {
  const messages: string[] = [];
  try {
    if (prebuild === undefined) throw new WorkspaceError("FAILED", "prebuild: it names no snapshot");
    await restoreSnapshot(tools, target, prebuild);
    for (const each of git) messages.push(await updateWorkingCopy(tools, target, each));
    return { source: ContentSource.PREBUILD, message: joined(messages) };
  } catch (error) {
    target.signal.throwIfAborted();
    const { message, code } = WorkspaceError.from(error);
    if (git.length === 0 || code === "NO_ROOM") throw error;
    messages.push(`the prebuild is not used: ${message}`);
  }
  await tools.clear(target.directory, target.signal);
  for (const each of git) messages.push(await cloneRepository(tools, target, each));
  return { source: ContentSource.GIT, message: joined(messages) };
}

function joined(messages: readonly string[]): string {
  return messages.filter((message) => message !== "").join("; ");
}
