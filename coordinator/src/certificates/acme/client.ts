import type { Client } from "acme-client";
import { oneLine } from "../issue-error.ts";
import { AcmeProblem, type Problem, retryAfterMs } from "./problem.ts";
import type { AcmeTransport } from "./transport.ts";

export interface ClientOptions {
  readonly directory: string;
  readonly accountKeyPem: string;
  /** The URL of the account; empty if the authority has not registered it. */
  readonly accountUrl: string;
  readonly externalAccount: ExternalAccount | undefined;
  readonly transport: AcmeTransport;
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
}

/**
 * The external account binding of RFC 8555, section 7.3.4: a key that binds the account to a
 * customer of the authority.
 */
export interface ExternalAccount {
  readonly keyId: string;
  /** The key in base64url. */
  readonly hmacKey: string;
}

/** A client of the ACME library, with the delay of the last Retry-After header. */
export interface AcmeClient {
  readonly client: Client;
  /**
   * Returns the delay in milliseconds that the last response requested; undefined if it requested
   * none.
   */
  retryAfterMs(): number | undefined;
}

interface LibraryRequest {
  readonly headers?: Readonly<Record<string, string>>;
  readonly data?: unknown;
}

interface LibraryResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly data: unknown;
}

/**
 * The member of the library's client that sends all requests. The library's types do not declare
 * it, so its version is pinned and tested.
 */
interface Sender {
  readonly http: {
    request(url: string, method: string, options?: LibraryRequest): Promise<LibraryResponse>;
  };
}

const USER_AGENT = "forage-coordinator acme-client/5.4.0";

/**
 * Creates a client for one attempt, which ends with the attempt's signal. The library implements
 * signatures, nonces and orders of ACME. Its requests use our transport, because its own would
 * repeat rejected requests with a used nonce. Rejections become AcmeProblem.
 */
export async function createClient(options: ClientOptions): Promise<AcmeClient> {
  const { directory, accountKeyPem, accountUrl, externalAccount } = options;
  // The library has 7 MB, or 40 MB unbundled, so it is loaded only if an ACME issuer is configured.
  const library = await import("acme-client");
  const client = new library.Client({
    directoryUrl: directory,
    accountKey: accountKeyPem,
    ...(accountUrl !== "" && { accountUrl }),
    ...(externalAccount !== undefined && {
      externalAccountBinding: { kid: externalAccount.keyId, hmacKey: externalAccount.hmacKey },
    }),
  });
  let newest: number | undefined;
  const sender = client as unknown as Sender;
  sender.http.request = async (url, method, request = {}) => {
    const answer = await send(url, method, request, options);
    newest = answer.retryAfterMs;
    return answer.response;
  };
  return { client, retryAfterMs: () => newest };
}

async function send(
  url: string,
  method: string,
  { headers, data }: LibraryRequest,
  { transport, nowMs, signal }: ClientOptions,
) {
  const body = data === undefined ? undefined : JSON.stringify(data);
  const answer = await transport(
    {
      url,
      method,
      headers: { "content-type": "application/jose+json", ...headers, "user-agent": USER_AGENT },
      body,
    },
    signal,
  );
  const wait = retryAfterMs(oneHeader(answer.headers["retry-after"]), nowMs());
  const parsed = parse(answer.body, oneHeader(answer.headers["content-type"]) ?? "");
  const { status } = answer;
  // The library itself retries a request with the nonce of such a response.
  if (status >= 400 && !isBadNonce(parsed)) {
    const problem = asProblem(parsed, answer.body);
    const general = method.toLowerCase() !== "post";
    throw new AcmeProblem({ status, problem, retryAfterMs: wait, general });
  }
  return { response: { status, headers: answer.headers, data: parsed }, retryAfterMs: wait };
}

function parse(body: string, contentType: string): unknown {
  if (!contentType.includes("json")) return body;
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

function asProblem(parsed: unknown, body: string): Problem {
  if (typeof parsed === "object" && parsed !== null) return parsed;
  const text = oneLine(body.replace(/<[^>]{0,200}>/g, " ")).slice(0, 200);
  return text === "" ? {} : { detail: text };
}

function isBadNonce(parsed: unknown): boolean {
  const type = typeof parsed === "object" && parsed !== null && "type" in parsed ? parsed.type : undefined;
  return type === "urn:ietf:params:acme:error:badNonce";
}

function oneHeader(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}
