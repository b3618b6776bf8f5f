import {
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request as requestPlain,
} from "node:http";
import { request as requestTls } from "node:https";
import { isIP } from "node:net";
import { failure, failureOf, type ProbeAnswer, success } from "./probe-answer.ts";
import type { ProbeHandler } from "./probe-spec.ts";
import { type TimeLimit, within } from "./time-limit.ts";

export type HttpHandler = ProbeHandler & { readonly type: "http" };

// kubelet reads the same amount of a body. The rest is dropped.
const BODY_BYTES_MAX = 10 * 1024;
const REDIRECTS_MAX = 10;
const DEFAULT_HEADERS: Readonly<Record<string, string>> = { "user-agent": "forage-probe", accept: "*/*" };

/**
 * Probes by HTTP. Status 200 to 399 passes, whatever the body. Redirects within the host are followed. A redirect to
 * another host passes without being followed: the container has responded, and the health of its target is not its own.
 * Certificates are not verified.
 */
export function askHttp(handler: HttpHandler, address: string, limit: TimeLimit): Promise<ProbeAnswer> {
  return within(limit, (settle) => {
    let request: ClientRequest | undefined;
    let released = false;
    let passed: ProbeAnswer | undefined;
    const ask = (url: URL, redirects: number) => {
      if (released) return;
      request = send(handler, url);
      request.on("error", (error) => settle(failureOf(error)));
      request.on("response", (response) => {
        const next = redirectOf(response, url);
        if (next === undefined) {
          if (hasPassed(response)) passed = withStatus(response, success(statusLine(response)));
          return read(response, (body) =>
            settle(passed ?? withStatus(response, failure(statusLine(response), body))),
          );
        }
        response.destroy();
        if (next.hostname !== url.hostname) {
          return settle(withStatus(response, success(`${statusLine(response)}, redirected to ${next.host}`)));
        }
        if (redirects === REDIRECTS_MAX) return settle(failure(`more than ${REDIRECTS_MAX} redirects`));
        ask(next, redirects + 1);
      });
    };
    ask(urlOf(handler, address), 0);
    return {
      release: () => {
        released = true;
        request?.destroy();
      },
      // A body that doesn't end is not a failure.
      late: () => passed,
    };
  });
}

function send(handler: HttpHandler, url: URL): ClientRequest {
  const headers = headersOf(handler);
  const options: RequestOptions = {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port,
    path: url.pathname + url.search,
    // A new connection each time, which also checks that new connections are accepted.
    agent: false,
    headers,
  };
  const request =
    url.protocol === "https:"
      ? requestTls({ ...options, rejectUnauthorized: false, ...serverNameFor(headers) })
      : requestPlain(options);
  return request.end();
}

function hasPassed({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 400;
}

/** Reads to the end of the body, or to the limit. */
function read(response: IncomingMessage, onEnd: (body: string) => void): void {
  let size = 0;
  const chunks: Buffer[] = [];
  const end = () => onEnd(Buffer.concat(chunks).toString());
  response.on("data", (chunk: Buffer) => {
    chunks.push(chunk.subarray(0, BODY_BYTES_MAX - size));
    size += chunk.byteLength;
    if (size >= BODY_BYTES_MAX) end();
  });
  response.on("end", end);
  // The response was truncated; the status counts.
  response.on("error", end);
}

function redirectOf({ statusCode = 0, headers }: IncomingMessage, from: URL): URL | undefined {
  const leadsOn = [301, 302, 303, 307, 308].includes(statusCode);
  const next = leadsOn && headers.location !== undefined ? URL.parse(headers.location, from.href) : null;
  return next !== null && /^https?:$/.test(next.protocol) ? next : undefined;
}

function withStatus({ statusCode = 0 }: IncomingMessage, answer: ProbeAnswer): ProbeAnswer {
  return { ...answer, httpStatus: statusCode };
}

function statusLine({ statusCode, statusMessage }: IncomingMessage): string {
  return `HTTP ${statusCode} ${statusMessage ?? ""}`.trimEnd();
}

function urlOf({ scheme, port, path }: HttpHandler, address: string): URL {
  const host = isIP(address) === 6 ? `[${address}]` : address;
  const absolute = path.startsWith("/") ? path : `/${path}`;
  return new URL(`${scheme === "HTTPS" ? "https" : "http"}://${host}:${port}${absolute}`);
}

/** Returns the headers. As in kubelet, an empty value removes a default. */
function headersOf({ headers }: HttpHandler): Record<string, string | string[]> {
  const given = Map.groupBy(headers, ({ name }) => name.toLowerCase());
  const all: Record<string, string | string[]> = {};
  for (const name of new Set([...Object.keys(DEFAULT_HEADERS), ...given.keys()])) {
    const values = given.get(name)?.map(({ value }) => value) ?? [DEFAULT_HEADERS[name] ?? ""];
    const [first, ...more] = values.filter((value) => value !== "");
    // `host` must not be an array, not even with one element.
    if (first !== undefined) all[name] = more.length === 0 || name === "host" ? first : [first, ...more];
  }
  return { ...all, connection: "close" };
}

/** Returns the Host header's name for TLS, because servers may select their certificate by it. */
function serverNameFor({ host }: Record<string, string | string[]>): { servername?: string } {
  const name = typeof host === "string" ? host.replace(/:\d+$/, "") : "";
  return name === "" || isIP(name) !== 0 || name.startsWith("[") ? {} : { servername: name };
}
