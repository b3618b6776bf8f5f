import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { credentials } from "@grpc/grpc-js";
import * as z from "zod";
import { StoreError } from "../store-error.ts";
import type { EtcdEndpoint } from "./etcd-client.ts";

/** The default for `trustTokensSeconds`. Most outages of etcd are shorter. */
export const DEFAULT_TRUST_TOKENS_SECONDS = 3_600;

/** The configuration of the etcd cluster that holds the store. */
export const ETCD_SCHEMA = z
  .strictObject({
    endpoints: z
      .array(z.string())
      .min(1)
      .max(9)
      .describe(
        "The client URLs of etcd's members, such as https://10.0.0.1:2379. Plain http is for loopback addresses only.",
      ),
    ca: z
      .string()
      .startsWith("/")
      .optional()
      .describe("PEM with the authority of the members' certificates. Default: the system's authorities."),
    cert: z
      .string()
      .startsWith("/")
      .optional()
      .describe("PEM with the coordinator's certificate, for etcd with --client-cert-auth."),
    key: z
      .string()
      .startsWith("/")
      .optional()
      .describe("PEM with the certificate's key; only the coordinator may read the file."),
    prefix: z
      .string()
      .regex(
        /^\/([A-Za-z0-9._-]+\/)+$/,
        "must be a path such as /forage/, of letters, digits, dots, underscores and hyphens",
      )
      .max(200)
      .default("/forage/")
      .describe("The beginning of all keys. Each cluster of Forage needs its own."),
    trustTokensSeconds: z
      .number()
      .min(1)
      .max(2_592_000)
      .default(DEFAULT_TRUST_TOKENS_SECONDS)
      .describe(
        "The time for which a coordinator that etcd does not answer accepts API tokens. A token that another coordinator has revoked meanwhile can read there as long.",
      ),
  })
  .superRefine(({ endpoints, cert, key, ca }, context) => {
    for (const [at, url] of endpoints.entries()) {
      const problem = endpointProblem(url);
      if (problem !== undefined)
        context.addIssue({ code: "custom", path: ["endpoints", at], message: problem });
    }
    if ((cert === undefined) !== (key === undefined))
      context.addIssue({
        code: "custom",
        path: [cert === undefined ? "cert" : "key"],
        message: "must be set too: cert and key belong together",
      });
    const isPlain = endpoints.some((url) => url.startsWith("http:"));
    if (isPlain && (ca ?? cert) !== undefined)
      context.addIssue({
        code: "custom",
        path: ["endpoints"],
        message: "must all be https, as ca or cert is set",
      });
  });

export type EtcdSettings = z.infer<typeof ETCD_SCHEMA>;

/** Returns the endpoints with the content of the TLS files. Throws INVALID_ARGUMENT if a file can't be read. */
export function etcdEndpoints({ endpoints, ca, cert, key }: EtcdSettings): EtcdEndpoint[] {
  const read = (path: string | undefined): Buffer | null => (path === undefined ? null : readPem(path));
  const isTls = endpoints.some((url) => url.startsWith("https:"));
  const secure = isTls ? createSecure(read(ca), read(key), read(cert)) : undefined;
  return endpoints.map((url) => ({
    url,
    address: addressOf(new URL(url)),
    credentials: (url.startsWith("https:") ? secure : undefined) ?? credentials.createInsecure(),
  }));
}

function createSecure(ca: Buffer | null, key: Buffer | null, cert: Buffer | null) {
  try {
    return credentials.createSsl(ca, key, cert);
  } catch (cause) {
    throw new StoreError(
      "INVALID_ARGUMENT",
      "store.etcd: ca, cert and key are not PEM files that fit together",
      { cause },
    );
  }
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new StoreError("INVALID_ARGUMENT", `store.etcd: ${path} can't be read`, { cause });
  }
}

function endpointProblem(text: string): string | undefined {
  const example = "must be a URL such as https://10.0.0.1:2379";
  if (!URL.canParse(text)) return example;
  const url = new URL(text);
  const isBare = url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "";
  if (!isBare || !["http:", "https:"].includes(url.protocol)) return example;
  if (url.protocol === "http:" && !isLoopback(url.hostname))
    return "must be https: the store's records would travel in plain text";
  return undefined;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || (isIP(host) === 4 && host.startsWith("127."));
}

function addressOf({ hostname, port, protocol }: URL): string {
  const defaultPort = protocol === "https:" ? "443" : "80";
  return `${hostname}:${port === "" ? defaultPort : port}`;
}
