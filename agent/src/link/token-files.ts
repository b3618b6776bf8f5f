import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { IdentityToken } from "@forage/proto/forage/agent/v1/agent";
import type { TokenStore } from "./assignment-reader.ts";

const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,199}$/;

export interface TokenFilesOptions {
  /** A directory on tmpfs. Created if missing, accessible to root only. */
  readonly directory: string;
  readonly onError: (error: unknown) => void;
}

/**
 * Keeps the newest identity tokens over restarts of the agent, but not of the host. Without them pods would get the tokens of
 * their assignments again until the coordinator reconnects. Writes run in the background, one after the other.
 */
export class TokenFiles implements TokenStore {
  readonly #options: TokenFilesOptions;
  readonly #tokens: Map<string, IdentityToken>;
  #writing: Promise<void> = Promise.resolve();

  private constructor(options: TokenFilesOptions, tokens: Map<string, IdentityToken>) {
    this.#options = options;
    this.#tokens = tokens;
  }

  /** Loads the tokens. Unreadable ones are left out, and the coordinator sends them again. */
  static async open(options: TokenFilesOptions): Promise<TokenFiles> {
    const tokens = new Map<string, IdentityToken>();
    try {
      await mkdir(options.directory, { recursive: true, mode: 0o700 });
      for (const name of await readdir(options.directory)) {
        const token = await read(join(options.directory, name));
        if (token !== undefined && SAFE_NAME.test(name)) tokens.set(name, token);
        else await rm(join(options.directory, name), { force: true });
      }
    } catch (error) {
      options.onError(error);
    }
    return new TokenFiles(options, tokens);
  }

  get(podUid: string): IdentityToken | undefined {
    return this.#tokens.get(podUid);
  }

  keys(): Iterable<string> {
    return this.#tokens.keys();
  }

  set(podUid: string, token: IdentityToken): void {
    if (!SAFE_NAME.test(podUid)) return;
    this.#tokens.set(podUid, token);
    this.#write(async (path) => {
      await writeFile(`${path}.tmp`, IdentityToken.encode(token).finish(), { mode: 0o600 });
      await rename(`${path}.tmp`, path);
    }, podUid);
  }

  delete(podUid: string): void {
    if (this.#tokens.delete(podUid)) this.#write((path) => rm(path, { force: true }), podUid);
  }

  /** Waits for what is still being written. */
  async close(): Promise<void> {
    await this.#writing;
  }

  #write(change: (path: string) => Promise<void>, podUid: string): void {
    const path = join(this.#options.directory, podUid);
    this.#writing = this.#writing.then(() => change(path)).catch(this.#options.onError);
  }
}

async function read(path: string): Promise<IdentityToken | undefined> {
  try {
    const token = IdentityToken.decode(await readFile(path));
    return token.token === "" ? undefined : token;
  } catch {
    return undefined;
  }
}
