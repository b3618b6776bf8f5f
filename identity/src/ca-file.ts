import { type CaOptions, CertificateAuthority } from "./ca.ts";
import { readKeyPair, writeKeyPair } from "./key-pair-file.ts";
import { hasFile, movePrivateFile } from "./private-file.ts";

/**
 * Reads the authority kept in a file (key and certificate, mode 0600). FILE_MISSING, FILE_UNSAFE, PAIR_MISMATCH,
 * CERTIFICATE_INVALID.
 */
export async function loadAuthority(path: string, options: CaOptions): Promise<CertificateAuthority> {
  const { chainPem, keyPem } = await readKeyPair(path);
  return await CertificateAuthority.fromPem({ certPem: chainPem, keyPem }, options);
}

/** Stores an authority. An existing file is never overwritten (EEXIST): losing it cuts off the whole fleet. */
export async function storeAuthority(path: string, ca: CertificateAuthority): Promise<void> {
  const { certPem, keyPem } = ca.toPem();
  await writeKeyPair(path, { chainPem: certPem, keyPem }, { replace: false });
}

/** Stores an authority in the place of another one, whose key is lost if no other file has it. */
export async function overwriteAuthority(path: string, ca: CertificateAuthority): Promise<void> {
  const { certPem, keyPem } = ca.toPem();
  await writeKeyPair(path, { chainPem: certPem, keyPem });
}

/** Puts the authority of one file in the place of another one, whose key is lost. A crash leaves both or the new one. */
export async function replaceAuthority(from: string, to: string): Promise<void> {
  await movePrivateFile(from, to);
}

/** Loads the authority, or makes and stores one at the first start. */
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
