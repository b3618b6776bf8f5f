import { type IncomingMessage, request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import { isIP } from "node:net";

export interface ScrapeFrom {
  /** The pod's address. */
  readonly address: string;
  readonly port: number;
  readonly path: string;
  readonly scheme: "http" | "https";
}

/** Returns the text of a pod's metrics. Rejects with an error whose message gives the reason. */
export type Scrape = (from: ScrapeFrom, signal: AbortSignal) => Promise<string>;

/** Well above the size of thousands of series. */
export const SCRAPE_BYTES_MAX = 1024 * 1024;
const HEADERS = {
  accept: "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4,*/*;q=0.1",
  // A compressed response could expand to any size.
  "accept-encoding": "identity",
  "user-agent": "forage-agent",
  connection: "close",
};

/**
 * Sends one GET request. Redirects aren't followed, because a pod must not make the host send requests to others.
 * Certificates aren't verified, as with probes.
 */
export const scrape: Scrape = ({ address, port, path, scheme }, signal) =>
  new Promise((resolve, reject) => {
    const options = { host: address, port, path, agent: false, headers: HEADERS, signal };
    const request =
      scheme === "https"
        ? requestTls({
            ...options,
            rejectUnauthorized: false,
            ...(isIP(address) ? {} : { servername: address }),
          })
        : requestPlain(options);
    const fail = (problem: unknown): void => {
      reject(problem instanceof Error ? problem : new Error(String(problem)));
      request.destroy();
    };
    request.on("error", (error) => fail(signal.aborted ? new Error("no answer in time") : error));
    request.on("response", (response) => {
      const { statusCode = 0, headers } = response;
      if (statusCode !== 200) return fail(new Error(`HTTP ${statusCode}`));
      if (![undefined, "identity"].includes(headers["content-encoding"]))
        return fail(
          new Error(
            `the response is compressed (${headers["content-encoding"]}) although the request allows no encoding`,
          ),
        );
      readAll(response).then(resolve, (error: unknown) =>
        fail(signal.aborted ? new Error("no complete response in time") : error),
      );
    });
    request.end();
  });

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).byteLength;
    if (bytes > SCRAPE_BYTES_MAX) throw new Error(`the response has more than ${SCRAPE_BYTES_MAX} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}
