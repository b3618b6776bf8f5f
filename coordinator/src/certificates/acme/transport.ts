import { Agent, request } from "node:https";
import { IssueError } from "../issue-error.ts";

export interface AcmeRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface AcmeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

/**
 * Sends one request to an authority. Resolves with every status. Throws IssueError if there is no
 * response.
 */
export type AcmeTransport = (request: AcmeRequest, signal: AbortSignal) => Promise<AcmeResponse>;

/** The time limit of a request. A slow authority takes some seconds. */
const TIMEOUT_MS = 30_000;
/** The size limit of a response. Certificate chains have a few kilobytes, orders less. */
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Returns a transport over TLS. `ca` are PEM certificates that replace the trusted roots of this
 * process. Redirects are not followed, because ACME does not use them.
 */
export function httpsTransport(ca: readonly string[] | undefined): {
  readonly transport: AcmeTransport;
  close(): void;
} {
  const agent = new Agent({ keepAlive: true, maxSockets: 8, ...(ca !== undefined && { ca: [...ca] }) });
  return {
    transport: (acmeRequest, signal) => send(acmeRequest, signal, agent),
    close: () => agent.destroy(),
  };
}

function send(acmeRequest: AcmeRequest, signal: AbortSignal, agent: Agent): Promise<AcmeResponse> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void =>
      reject(signal.aborted ? signal.reason : unreachable(acmeRequest.url, cause));
    const { url, method, headers, body } = acmeRequest;
    if (!url.startsWith("https:")) {
      fail(new Error("the URL is not an https URL"));
      return;
    }
    const outgoing = request(url, {
      method: method.toUpperCase(),
      headers,
      agent,
      signal,
      timeout: TIMEOUT_MS,
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`silent for ${TIMEOUT_MS / 1000} s`)));
    outgoing.on("error", fail);
    outgoing.on("response", (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length > MAX_BODY_BYTES) outgoing.destroy(new Error("the answer exceeds one megabyte"));
        else chunks.push(chunk);
      });
      response.on("error", fail);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text });
      });
    });
    outgoing.end(body);
  });
}

/**
 * Returns an error with the text of the operating system or of TLS, neither of which contains parts
 * of the request.
 */
function unreachable(url: string, cause: Error): IssueError {
  const place = URL.canParse(url) ? new URL(url).origin : "its URL";
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  const text = cause.message === "" ? code : cause.message;
  const advice = CERTIFICATE_CODES.test(code)
    ? ": if the authority is your own, name its root in certificates.acme.caFile"
    : "";
  return new IssueError(`the authority at ${place} can't be reached: ${text}${advice}`, {
    blame: "issuer",
    cause,
  });
}

const CERTIFICATE_CODES = /SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|CERT_|ALTNAME/;
