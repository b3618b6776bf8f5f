import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { IdentityError, splitCertificates } from "@forage/identity";
import { type CheckedKeyPair, checkKeyPair, readKeyPair, writeKeyPair } from "@forage/identity/key-pair-file";
import { readPrivateFile, writePrivateFile } from "@forage/identity/private-file";
import { LinkError } from "./link-error.ts";

/** The node's credentials and the authority that it trusts. */
export interface NodeIdentity {
  readonly pair: CheckedKeyPair;
  readonly caPem: string;
}

/** A key that has no certificate yet. It is stored, because the response to a join may be lost and requested again. */
export interface PendingKey {
  readonly tokenId: string;
  readonly keyPem: string;
  readonly csrPem: string;
}

/** The key of a renewal, whose response may be lost or fail to be written. */
export type RenewalKey = Omit<PendingKey, "tokenId">;

/**
 * The node's identity on disk: `node.pem` (key and chain in one file, mode 0600), `ca.pem`, `pending.json` during a
 * join and `renewal.json` during a renewal.
 */
export class IdentityFiles {
  readonly #dir: string;
  #authorityPem: string | undefined;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** The trusted authority as last read or written. Undefined before that. */
  get authorityPem(): string | undefined {
    return this.#authorityPem;
  }

  /** Reads only the trusted authority, which pods receive even if the rest is damaged. */
  async loadAuthority(): Promise<void> {
    this.#authorityPem = await readPrivateFile(this.#path("ca.pem")).catch(() => undefined);
  }

  /**
   * Loads the identity; undefined before the first join. Throws if a file is unsafe or damaged, because the node must
   * not join again for that reason.
   */
  async load(): Promise<NodeIdentity | undefined> {
    try {
      const pair = await readKeyPair(this.#path("node.pem"));
      const caPem = await readPrivateFile(this.#path("ca.pem"));
      this.#authorityPem = caPem;
      return { pair, caPem };
    } catch (error) {
      if (error instanceof IdentityError && error.code === "FILE_MISSING") return undefined;
      throw error;
    }
  }

  /** Checks that the parts match before replacing anything on disk. */
  async save(keyPem: string, chainPem: string, caPem: string): Promise<NodeIdentity> {
    if (splitCertificates(caPem).length === 0)
      throw new LinkError("PROTOCOL", "the coordinator sent no authority");
    checkKeyPair({ keyPem, chainPem }, caPem);
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    await writePrivateFile(this.#path("ca.pem"), caPem);
    this.#authorityPem = caPem;
    const pair = await writeKeyPair(this.#path("node.pem"), { keyPem, chainPem });
    return { pair, caPem };
  }

  async loadPending(): Promise<PendingKey | undefined> {
    const read = await this.#loadJson("pending.json");
    return isPending(read) ? read : undefined;
  }

  /** Loads the key of a renewal. Returns undefined if no renewal is in progress or its file is damaged. */
  async loadRenewal(): Promise<RenewalKey | undefined> {
    const read = await this.#loadJson("renewal.json");
    return isRenewal(read) ? read : undefined;
  }

  saveRenewal({ keyPem, csrPem }: RenewalKey): Promise<void> {
    return writePrivateFile(this.#path("renewal.json"), JSON.stringify({ keyPem, csrPem }));
  }

  clearRenewal(): Promise<void> {
    return rm(this.#path("renewal.json"), { force: true });
  }

  async #loadJson(name: string): Promise<unknown> {
    try {
      return JSON.parse(await readPrivateFile(this.#path(name)));
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      if (error instanceof IdentityError && error.code === "FILE_MISSING") return undefined;
      throw error;
    }
  }

  savePending(pending: PendingKey): Promise<void> {
    return writePrivateFile(this.#path("pending.json"), JSON.stringify(pending));
  }

  clearPending(): Promise<void> {
    return rm(this.#path("pending.json"), { force: true });
  }

  /** Returns the token of the current identity, which must not be used a second time. */
  async usedToken(): Promise<string> {
    return readPrivateFile(this.#path("token-id")).catch(() => "");
  }

  saveUsedToken(tokenId: string): Promise<void> {
    return writePrivateFile(this.#path("token-id"), tokenId);
  }

  #path(name: string): string {
    return join(this.#dir, name);
  }
}

function isPending(value: unknown): value is PendingKey {
  if (typeof value !== "object" || value === null) return false;
  return typeof (value as Partial<PendingKey>).tokenId === "string" && isRenewal(value);
}

function isRenewal(value: unknown): value is RenewalKey {
  if (typeof value !== "object" || value === null) return false;
  const { keyPem, csrPem } = value as Partial<RenewalKey>;
  return typeof keyPem === "string" && typeof csrPem === "string";
}
