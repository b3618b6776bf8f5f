import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { hasFile, readPrivateFile, writePrivateFile } from "@forage/identity/private-file";
import { ConfigError } from "../config.ts";
import { KEY_BYTES, type SecretKey } from "./key-ring.ts";

/** The limit of keys. Old keys stay until the records were encrypted again, which happens at one start. */
const MAX_KEYS = 16;

export interface KeyFileOptions {
  /** The path from the configuration. */
  readonly path?: string | undefined;
  /** The directory of systemd's credentials (`LoadCredential=`). */
  readonly credentialsDirectory?: string | undefined;
  /** The path of the key file that is created when there is none and no other is configured. */
  readonly defaultPath: string;
  /** Whether a key file may be created. False if there are secrets that need the cluster's existing keys. */
  readonly mayMake: boolean;
}

const CREDENTIAL_NAME = "forage-secret-keys";

/**
 * Returns the keys; the first one encrypts. The file has one key per line, 32 bytes in base64; blank lines and lines with #
 * are ignored. It is read from the configured path, else from systemd's credential, else from the default path. Throws
 * ConfigError, FILE_MISSING, FILE_UNSAFE.
 */
export async function loadKeys(options: KeyFileOptions): Promise<readonly SecretKey[]> {
  const { path, credentialsDirectory, defaultPath, mayMake } = options;
  if (path === undefined && credentialsDirectory !== undefined) {
    const credential = join(credentialsDirectory, CREDENTIAL_NAME);
    // systemd protects the directory, so the modes of the files in it are not checked.
    if (await hasFile(credential)) return parseKeys(await readFile(credential, "utf8"), credential);
  }
  if (path === undefined && !(await hasFile(defaultPath))) {
    if (!mayMake)
      throw new ConfigError(
        `${defaultPath} does not exist, and secrets in the store are encrypted with its keys: restore it from its copy, name another file in \`secretKeyFile\`, or get it from another coordinator with the command that \`forage coordinator add\` prints`,
      );
    await makeKeyFile(defaultPath);
  }
  const file = path ?? defaultPath;
  return parseKeys(await readPrivateFile(file), file);
}

/** Parses a key file. A key's id is derived from the key, so that two keys never have the same id. Pure. */
export function parseKeys(text: string, file: string): readonly SecretKey[] {
  const keys = text
    .split("\n")
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line }) => line !== "" && !line.startsWith("#"))
    .map(({ line, number }): SecretKey => {
      const bytes = Buffer.from(line, "base64");
      // The message doesn't quote the line, which may be a key with a typo.
      if (bytes.length !== KEY_BYTES || bytes.toString("base64") !== line)
        throw new ConfigError(
          `${file}, line ${number}: must be ${KEY_BYTES} bytes in base64, as \`openssl rand -base64 ${KEY_BYTES}\` makes them`,
        );
      return { id: keyIdOf(bytes), bytes };
    });
  if (keys.length === 0) throw new ConfigError(`${file} contains no key`);
  if (keys.length > MAX_KEYS)
    throw new ConfigError(`${file} contains ${keys.length} keys; the limit is ${MAX_KEYS}`);
  if (new Set(keys.map(({ id }) => id)).size < keys.length)
    throw new ConfigError(`${file} contains a key twice`);
  return keys;
}

function keyIdOf(bytes: Uint8Array): string {
  return createHash("sha256").update("forage secret key\0").update(bytes).digest("hex").slice(0, 16);
}

async function makeKeyFile(path: string): Promise<void> {
  const text = `# Encrypts secrets in the store. Keep a copy away from the store's backups: without it they are lost.\n${randomBytes(KEY_BYTES).toString("base64")}\n`;
  await writePrivateFile(path, text, { replace: false });
}
