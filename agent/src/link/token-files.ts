import { join } from "node:path";
import { IdentityToken } from "@forage/proto/forage/agent/v1/agent";
import { hostFiles, type JournalFiles } from "../journal/journal-files.ts";
import type { TokenStore } from "./assignment-reader.ts";

const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,199}$/;

export interface TokenFilesOptions {
  /** A directory on tmpfs. Created if missing, accessible to root only. */
  readonly directory: string;
  /** Default: the host's disk. */
  readonly files?: JournalFiles;
  readonly onError: (error: unknown) => void;
}

/**
 * Keeps the newest identity tokens over restarts of the agent, but not of the host. Without them pods would get the
 * older tokens of their assignments until the coordinator reconnects. Writes run in the background, one after the
 * other.
 */
export class TokenFiles implements TokenStore {
  readonly #options: TokenFilesOptions;
  readonly #files: JournalFiles;
  readonly #tokens: Map<string, IdentityToken>;
  #writing: Promise<void> = Promise.resolve();

  private constructor(options: TokenFilesOptions, tokens: Map<string, IdentityToken>) {
    this.#options = options;
    this.#files = options.files ?? hostFiles;
    this.#tokens = tokens;
  }

  /** Loads the tokens. Unreadable ones are left out, and the coordinator sends them again. */
  static async open(options: TokenFilesOptions): Promise<TokenFiles> {
    const { directory, files = hostFiles } = options;
    const tokens = new Map<string, IdentityToken>();
    try {
      await files.makeDirectory(directory);
      for (const name of await files.list(directory)) {
        const token = await read(files, join(directory, name));
        if (token !== undefined && SAFE_NAME.test(name)) tokens.set(name, token);
        else await files.remove(join(directory, name));
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
    const bytes = IdentityToken.encode(token).finish();
    this.#change(() => this.#files.write(this.#options.directory, [{ name: podUid, bytes }]));
  }

  delete(podUid: string): void {
    if (!this.#tokens.delete(podUid)) return;
    this.#change(() => this.#files.remove(join(this.#options.directory, podUid)));
  }

  /** Waits for pending writes. */
  async close(): Promise<void> {
    await this.#writing;
  }

  #change(change: () => Promise<void>): void {
    this.#writing = this.#writing.then(change).catch(this.#options.onError);
  }
}

async function read(files: JournalFiles, path: string): Promise<IdentityToken | undefined> {
  try {
    const token = IdentityToken.decode(await files.read(path));
    return token.token === "" ? undefined : token;
  } catch {
    return undefined;
  }
}
