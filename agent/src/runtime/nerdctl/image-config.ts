import { normalizeImage } from "../image-reference.ts";
import { RuntimeError } from "../runtime.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";

/**
 * Returns the image's USER; empty means root. Rejects with IMAGE_NOT_FOUND, retryable by a pull, if the image isn't in
 * the local store.
 */
export async function readImageUser(
  cli: NerdctlCli,
  reference: string,
  signal: AbortSignal,
): Promise<string> {
  const image = normalizeImage(reference);
  try {
    const args = ["image", "inspect", "--format", "{{json .Config.User}}", "--", image];
    const { stdout } = await cli.call(args, { signal });
    const user: unknown = JSON.parse(stdout.trim() || '""');
    return typeof user === "string" ? user : "";
  } catch (error) {
    if (!(error instanceof RuntimeError) || error.code !== "NOT_FOUND") throw error;
    throw new RuntimeError("IMAGE_NOT_FOUND", `${image} is not on this host`, {
      retryable: true,
      cause: error,
    });
  }
}
