import { webcrypto } from "node:crypto";
import * as x509 from "@forage/identity/x509";
import { ServerCredentials } from "@grpc/grpc-js";

export interface AutoMtls {
  readonly credentials: ServerCredentials;
  /** Unpadded base64 of the certificate's DER, for the handshake. */
  readonly certificate: string;
}

const KEY = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING = { name: "ECDSA", hash: "SHA-256" } as const;
/** The name that the host compares. */
const SERVER_NAME = "localhost";
const DAY_MS = 86_400_000;
/** The certificate must outlive the process, which may run for years. */
const VALID_DAYS = 3_650;

/** Creates a certificate for this process, and accepts connections only with the host's certificate. */
export async function makeAutoMtls(clientCertificatePem: string, nowMs: number): Promise<AutoMtls> {
  const client = readCertificate(clientCertificatePem);
  const keys = await webcrypto.subtle.generateKey(KEY, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${SERVER_NAME}`,
      keys,
      signingAlgorithm: SIGNING,
      notBefore: new Date(nowMs - DAY_MS),
      notAfter: new Date(nowMs + VALID_DAYS * DAY_MS),
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.digitalSignature |
            x509.KeyUsageFlags.keyCertSign |
            x509.KeyUsageFlags.keyAgreement,
          true,
        ),
        new x509.ExtendedKeyUsageExtension([
          x509.ExtendedKeyUsage.serverAuth,
          x509.ExtendedKeyUsage.clientAuth,
        ]),
        new x509.SubjectAlternativeNameExtension([{ type: "dns", value: SERVER_NAME }]),
      ],
    },
    webcrypto,
  );
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const pair = {
    cert_chain: Buffer.from(certificate.toString("pem")),
    private_key: Buffer.from(x509.PemConverter.encode(pkcs8, "PRIVATE KEY")),
  };
  return {
    credentials: ServerCredentials.createSsl(Buffer.from(client.toString("pem")), [pair], true),
    certificate: Buffer.from(certificate.rawData).toString("base64").replaceAll("=", ""),
  };
}

function readCertificate(pem: string): x509.X509Certificate {
  try {
    return new x509.X509Certificate(pem);
  } catch (cause) {
    throw new Error("PLUGIN_CLIENT_CERT is not a certificate in PEM", { cause });
  }
}
