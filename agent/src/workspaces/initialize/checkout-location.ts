import { WorkspaceError } from "../workspace-error.ts";

const PATH_BYTES_MAX = 1_024;

/**
 * Returns a path below the content's root as an initializer names it, without empty parts. Empty: the root itself.
 * @throws WorkspaceError INVALID for paths that lead out of it.
 */
export function checkoutLocation(field: string, path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  const isBad =
    parts.includes("..") ||
    path.includes("\0") ||
    path.includes("\n") ||
    Buffer.byteLength(path) > PATH_BYTES_MAX;
  if (isBad) {
    throw new WorkspaceError(
      "INVALID",
      `${field}: ${JSON.stringify(path.slice(0, 100))} is not a relative path within the workspace`,
    );
  }
  return parts.join("/");
}
