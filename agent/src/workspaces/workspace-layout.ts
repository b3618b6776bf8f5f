import { createHash } from "node:crypto";
import { join } from "node:path";
import { WorkspaceError } from "./workspace-error.ts";

/** Instance ids become directory names. */
const INSTANCE_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
// Enough to distinguish the transfers of one workspace. The digits are a safe file name for any id.
const TRANSFER_NAME_DIGITS = 32;

/** The paths of workspaces. All files of a workspace are in one directory, which is deleted with it. */
export class WorkspaceLayout {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** The directory of directories that are being deleted. No instance id begins with a dot. */
  get discarded(): string {
    return join(this.root, ".discarded");
  }

  /** Returns the directory with the files of one workspace that are being deleted. */
  discardedOf(id: string): string {
    assertInstanceId(id);
    return join(this.discarded, id);
  }

  home(id: string): string {
    assertInstanceId(id);
    return join(this.root, id);
  }

  order(id: string): string {
    return join(this.home(id), "order");
  }

  state(id: string): string {
    return join(this.home(id), "state");
  }

  secrets(id: string): string {
    return join(this.home(id), "secrets");
  }

  /** The path of the file system that holds the content: a directory, or the mount point of an image. */
  volume(id: string): string {
    return join(this.home(id), "volume");
  }

  /** The path of the image that enforces a quota. */
  image(id: string): string {
    return join(this.home(id), "volume.img");
  }

  /** The path of the complete content. A rename creates it, so it exists only once the content is complete. */
  content(id: string): string {
    return join(this.volume(id), "content");
  }

  /** The path of content that an initializer is filling. */
  unfinished(id: string): string {
    return join(this.volume(id), "unfinished");
  }

  archives(id: string): string {
    return join(this.home(id), "archives");
  }

  /** Returns the prefix of a transfer's files. */
  archiveName(transferId: string): string {
    return createHash("sha256").update(transferId).digest("hex").slice(0, TRANSFER_NAME_DIGITS);
  }
}

export function isInstanceId(id: string): boolean {
  return INSTANCE_ID.test(id);
}

function assertInstanceId(id: string): void {
  if (!isInstanceId(id))
    throw new WorkspaceError("INVALID", `${JSON.stringify(id)} can't be a workspace's instance id`);
}
