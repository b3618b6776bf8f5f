import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { getCACertificates } from "node:tls";
import { WorkspaceError } from "../workspace-error.ts";
import { type RefuseAddress, reachableAddress } from "./reachable.ts";

// About as many as browsers and curl follow.
const REDIRECTS_MAX = 5;
// A server that sends nothing for this long is down.
const IDLE_MS = 60_000;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const URL_LENGTH_MAX = 4_096;

export interface FetchOptions {
  readonly refuse: RefuseAddress;
  readonly signal: AbortSignal;
}

/**
 * Yields the body of a URL's response. Redirects are checked like the first URL. Error messages name the field and the
 * host, but never the URL, which may contain a secret.
 */
export async function* fetchUrl(field: string, url: string, options: FetchOptions): AsyncGenerator<Buffer> {
  let target = parse(field, url);
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
    const response = await get(field, target, options);
    const { statusCode = 0, headers } = response;
    if (REDIRECTS.includes(statusCode) && headers.location !== undefined) {
      response.destroy();
      target = parse(field, headers.location, target);
      continue;
    }
    if (statusCode !== 200) {
      response.destroy();
      const isFinal = statusCode >= 400 && statusCode < 500 && statusCode !== 408 && statusCode !== 429;
      const message = `${field}: ${target.host} answers with status ${statusCode}`;
      throw new WorkspaceError(isFinal ? "FAILED" : "UNAVAILABLE", message);
    }
    try {
      yield* response as AsyncIterable<Buffer>;
    } catch (cause) {
      options.signal.throwIfAborted();
      throw new WorkspaceError("UNAVAILABLE", `${field}: ${target.host} broke off`, { cause });
    } finally {
      response.destroy();
    }
    return;
  }
  throw new WorkspaceError("FAILED", `${field}: more than ${REDIRECTS_MAX} redirects`);
}

function parse(field: string, text: string, base?: URL): URL {
  const isUrl = text.length <= URL_LENGTH_MAX && URL.canParse(text, base?.href);
  const url = isUrl ? new URL(text, base?.href) : undefined;
  if (url?.protocol === "https:" || url?.protocol === "http:") return url;
  throw new WorkspaceError("INVALID", `${field}: it must be an http or https URL`);
}

async function get(field: string, url: URL, { refuse, signal }: FetchOptions): Promise<IncomingMessage> {
  const address = await reachableAddress(url.hostname, refuse);
  const isHttps = url.protocol === "https:";
  const auth =
    url.username === ""
      ? {}
      : { auth: `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}` };
  return await new Promise((resolve, reject) => {
    const make = isHttps ? httpsRequest : httpRequest;
    const request = make({
      host: address,
      port: url.port === "" ? (isHttps ? 443 : 80) : Number(url.port),
      path: url.pathname + url.search,
      headers: { host: url.host, "user-agent": "forage" },
      ...auth,
      ...(isHttps && { servername: url.hostname, ca: publicAuthorities() }),
      ...{ agent: false, signal, timeout: IDLE_MS },
    });
    request.once("response", resolve);
    request.once("timeout", () => request.destroy(new Error(`no answer within ${IDLE_MS / 1_000} s`)));
    request.on("error", (cause) => {
      if (signal.aborted) reject(signal.reason);
      else reject(new WorkspaceError("UNAVAILABLE", `${field}: ${url.host}: ${cause.message}`, { cause }));
    });
    request.end();
  });
}

/**
 * Returns Node's public authorities and those of NODE_EXTRA_CA_CERTS. The agent runs with `--use-openssl-ca`, so it
 * would otherwise use the host's authorities, which may be missing.
 */
function publicAuthorities(): string[] {
  return [...getCACertificates("bundled"), ...getCACertificates("extra")];
}
