import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdir, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import { ConfigError } from "../config.ts";
import { hostsFile } from "./hosts-file.ts";
import type { ClientFiles, Registries, RegistryAccess } from "./parse-registries.ts";

/** nerdctl's own directories, which apply to all other registries. */
const DEFAULT_DIRS = ["/etc/containerd/certs.d", "/etc/docker/certs.d"];
/** Bundles of authorities have about 300 KiB. */
const FILE_MAX_BYTES = 4 * 1024 * 1024;

/**
 * Writes the directory from which nerdctl reads the settings of registries, and returns the directories to pass;
 * undefined if there are no settings. The files name certificates and keys, but contain none. `noteProblem` is called
 * with the reason for each unusable registry. Running pods don't need it, so the agent starts nevertheless. Pulls from
 * it fail until the file is fixed, because its settings still name the file.
 */
export async function writeRegistries(
  directory: string,
  registries: Registries,
  noteProblem: (registry: string, problem: unknown) => void,
): Promise<readonly string[] | undefined> {
  const entries = Object.entries(registries);
  const note = (registry: string) => (problem: unknown) => noteProblem(registry, problem);
  await rm(directory, { recursive: true, force: true }).catch(note("*"));
  if (entries.length === 0) return undefined;
  for (const [name, access] of entries) {
    await assertFiles(name, access).catch(note(name));
    await writeHosts(directory, name, access).catch(note(name));
  }
  return [directory, ...DEFAULT_DIRS];
}

async function writeHosts(directory: string, name: string, access: RegistryAccess): Promise<void> {
  await mkdir(join(directory, name), { recursive: true, mode: 0o700 });
  await writeFile(join(directory, name, "hosts.toml"), hostsFile(name, access), { mode: 0o600 });
}

/** Throws ConfigError if a file can't be used. */
async function assertFiles(name: string, { caFile, client }: RegistryAccess): Promise<void> {
  const path = `registries.${name}`;
  if (caFile !== undefined) await readCertificate(`${path}.caFile`, caFile);
  if (client !== undefined) await assertClient(path, client);
}

async function assertClient(path: string, { certFile, keyFile }: ClientFiles): Promise<void> {
  const certificate = await readCertificate(`${path}.clientCertFile`, certFile);
  const setting = `${path}.clientKeyFile`;
  const { text, mode } = await readText(setting, keyFile);
  if ((mode & 0o077) !== 0)
    throw new ConfigError(`${setting}: ${keyFile} is readable by others: chmod 600 ${keyFile}`);
  if (!certificate.checkPrivateKey(parse(setting, keyFile, () => createPrivateKey(text))))
    throw new ConfigError(`${setting}: ${keyFile} is not the key of ${certFile}`);
}

async function readCertificate(setting: string, file: string): Promise<X509Certificate> {
  const { text } = await readText(setting, file);
  return parse(setting, file, () => new X509Certificate(text));
}

/** Parses a file. The library's reason is left out, because it may quote the file. */
function parse<Value>(setting: string, file: string, read: () => Value): Value {
  try {
    return read();
  } catch {
    throw new ConfigError(`${setting}: ${file} is not in PEM format`);
  }
}

async function readText(setting: string, path: string): Promise<{ text: string; mode: number }> {
  try {
    const file = await open(path, "r");
    try {
      const { size, mode } = await file.stat();
      if (size > FILE_MAX_BYTES) throw new Error(`it is larger than ${FILE_MAX_BYTES} bytes`);
      return { text: await file.readFile("utf8"), mode };
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw new ConfigError(`${setting}: ${path} can't be read: ${messageOf(cause)}`, { cause });
  }
}
