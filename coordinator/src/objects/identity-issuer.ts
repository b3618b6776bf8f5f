import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";
import { hasFile, readPrivateFile, writePrivateFile } from "@forage/identity/private-file";
import { ConfigError } from "../config.ts";

/** The identity of a pod. */
export interface PodIdentity {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly podName: string;
  readonly podUid: string;
  readonly node: string;
}

export interface SignedToken {
  readonly token: string;
  readonly expiresAtMs: number;
}

/** A public key in the form of `/.well-known/jwks.json`. */
export interface PublicKeyEntry {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y: string;
  readonly kid: string;
  readonly use: "sig";
  readonly alg: "ES256";
}

const LIFETIME_MS = 3_600_000;
/** The share of its lifetime after which a token is replaced. */
export const REFRESH_SHARE = 0.8;
/** The time by which tokens are backdated, because clocks of verifiers may be behind the coordinator's. */
const BACKDATE_MS = 60_000;
const MAX_KEYS = 4;

interface SigningKey {
  readonly key: KeyObject;
  readonly entry: PublicKeyEntry;
}

/**
 * Signs tokens (JWT, ES256) with the first key. All keys are published, so that tokens stay valid after a change of the
 * signing key.
 */
export class IdentityIssuer {
  readonly issuer: string;
  readonly #keys: readonly SigningKey[];
  readonly #first: SigningKey;

  constructor(options: { readonly issuer: string; readonly keys: readonly KeyObject[] }) {
    this.issuer = options.issuer;
    this.#keys = options.keys.map((key) => ({ key, entry: entryOf(key) }));
    const [first] = this.#keys;
    if (first === undefined) throw new TypeError("an issuer must have a key");
    this.#first = first;
  }

  issue(pod: PodIdentity, nowMs: number): SignedToken {
    const nowSeconds = Math.floor(nowMs / 1000);
    const expires = nowSeconds + LIFETIME_MS / 1000;
    const header = { alg: "ES256", typ: "JWT", kid: this.#first.entry.kid };
    const claims = {
      iss: this.issuer,
      sub: `system:serviceaccount:${pod.namespace}:${pod.serviceAccount}`,
      aud: [this.issuer],
      iat: nowSeconds,
      nbf: nowSeconds - BACKDATE_MS / 1000,
      exp: expires,
      "forage.dev": {
        namespace: pod.namespace,
        serviceaccount: { name: pod.serviceAccount },
        pod: { name: pod.podName, uid: pod.podUid },
        node: { name: pod.node },
      },
    };
    const text = `${encoded(header)}.${encoded(claims)}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.#first.key, dsaEncoding: "ieee-p1363" });
    return { token: `${text}.${signature.toString("base64url")}`, expiresAtMs: expires * 1000 };
  }

  publicKeys(): readonly PublicKeyEntry[] {
    return this.#keys.map(({ entry }) => entry);
  }
}

/**
 * Reads the P-256 keys from a PEM file; the first one signs. Creates the file if it doesn't exist and `mayMake` is set.
 * Throws ConfigError, FILE_UNSAFE.
 */
export async function loadSigningKeys(
  path: string,
  { mayMake }: { readonly mayMake: boolean },
): Promise<readonly KeyObject[]> {
  if (!(await hasFile(path))) {
    if (!mayMake)
      throw new ConfigError(
        `${path} does not exist, and another coordinator leads: get the keys with the command that \`forage coordinator add\` prints`,
      );
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    await writePrivateFile(path, String(privateKey.export({ type: "pkcs8", format: "pem" })), {
      replace: false,
    });
  }
  const blocks = (await readPrivateFile(path)).match(
    /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END [A-Z ]*PRIVATE KEY-----/g,
  );
  if (blocks === null || blocks.length > MAX_KEYS)
    throw new ConfigError(`${path} must hold 1 to ${MAX_KEYS} private keys in PEM`);
  return blocks.map((pem, index) => signingKey(pem, `${path}, key ${index + 1}`));
}

function signingKey(pem: string, what: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    // The cause is left out, because errors of parsers often quote the input.
    throw new ConfigError(`${what} can't be read`);
  }
  if (key.asymmetricKeyType !== "ec" || key.asymmetricKeyDetails?.namedCurve !== "prime256v1")
    throw new ConfigError(`${what} must be an elliptic curve key on P-256`);
  return key;
}

/** Returns the published form of a key. Its id is the key's thumbprint, RFC 7638. */
function entryOf(key: KeyObject): PublicKeyEntry {
  const { kty = "", crv = "", x = "", y = "" } = createPublicKey(key).export({ format: "jwk" });
  const kid = createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
  return { kty, crv, x, y, kid, use: "sig", alg: "ES256" };
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
