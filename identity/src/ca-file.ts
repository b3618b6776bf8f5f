import { type CaOptions, CertificateAuthority } from "./ca.ts";
import { readKeyPair, writeKeyPair } from "./key-pair-file.ts";
import { hasFile, movePrivateFile } from "./private-file.ts";

/**
 * Reads an authority's key and certificate from a file of mode 0600. @throws IdentityError FILE_MISSING, FILE_UNSAFE,
 * PAIR_MISMATCH, CERTIFICATE_INVALID.
 */
export async function loadAuthority(path: string, options: CaOptions): Promise<CertificateAuthority> {
  const { chainPem, keyPem } = await readKeyPair(path);
  return await CertificateAuthority.fromPem({ certPem: chainPem, keyPem }, options);
}

/** Stores an authority. Fails with EEXIST if the file exists: without its authority the whole fleet can't connect. */
export async function storeAuthority(path: string, ca: CertificateAuthority): Promise<void> {
  const { certPem, keyPem } = ca.toPem();
  await writeKeyPair(path, { chainPem: certPem, keyPem }, { replace: false });
}

/** Replaces the authority in a file. The old key is lost unless another file has it. */
export async function overwriteAuthority(path: string, ca: CertificateAuthority): Promise<void> {
  const { certPem, keyPem } = ca.toPem();
  await writeKeyPair(path, { chainPem: certPem, keyPem });
}

/**
 * Moves an authority from one file to another and replaces the one there, whose key is lost. After a crash either both
 * files or only the new one exist.
 */
export async function replaceAuthority(from: string, to: string): Promise<void> {
  await movePrivateFile(from, to);
}

/** Loads the authority. At the first start, makes and stores one. */
export async function loadOrCreateAuthority(
  path: string,
  cluster: string,
  options: CaOptions,
): Promise<CertificateAuthority> {
  if (await hasFile(path)) return await loadAuthority(path, options);
  const ca = await CertificateAuthority.create(cluster, options);
  await storeAuthority(path, ca);
  return ca;
}
