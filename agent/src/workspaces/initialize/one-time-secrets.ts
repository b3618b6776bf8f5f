import { WorkspaceError } from "../workspace-error.ts";
import { fetchUrl } from "./fetch-url.ts";
import type { RefuseAddress } from "./reachable.ts";
import type { Credentials } from "./remote.ts";

/** Keeps secrets that can be fetched only once until the content is complete, also over restarts of the agent. */
export interface SecretCache {
  read(id: string): Promise<Readonly<Record<string, string>>>;
  write(id: string, secrets: Readonly<Record<string, string>>): Promise<void>;
}

// The content is `user:password`, and tokens are far shorter than this.
const SECRET_BYTES_MAX = 8 * 1024;

/**
 * Fetches `user:password` from a URL that returns it once. A repeated call for the same workspace returns the stored
 * secret.
 */
export async function oneTimeCredentials(
  id: string,
  url: string,
  { secrets, refuse, signal }: { secrets: SecretCache; refuse: RefuseAddress; signal: AbortSignal },
): Promise<Credentials> {
  const known = await secrets.read(id);
  const text = known[url] ?? (await fetchSecret(url, refuse, signal));
  if (known[url] === undefined) await secrets.write(id, { ...known, [url]: text });
  const colon = text.indexOf(":");
  if (colon < 0) throw new WorkspaceError("FAILED", "git.config.auth_ots: the answer is not user:password");
  return { user: text.slice(0, colon), password: text.slice(colon + 1).trimEnd() };
}

async function fetchSecret(url: string, refuse: RefuseAddress, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of fetchUrl("git.config.auth_ots", url, { refuse, signal })) {
    bytes += chunk.byteLength;
    if (bytes > SECRET_BYTES_MAX)
      throw new WorkspaceError("FAILED", "git.config.auth_ots: the answer is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
