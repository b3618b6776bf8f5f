import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ensureGoProgram } from "../../../hack/lib/go-program.ts";

const sources = join(import.meta.dirname, "../../../hack/linkerd");

export interface LinkerdRequest {
  readonly program: string;
  readonly address: string;
  readonly method: "get" | "getProfile";
  readonly path: string;
  readonly contextToken?: string;
  /** The TLS settings. If absent, the client uses plain text. */
  readonly tls?: { readonly caFile: string; readonly bearer: string };
}

/** The parts of an answer that tests read, in protobuf's JSON form. */
export interface LinkerdMessage {
  readonly add?: {
    readonly addrs: readonly {
      readonly addr: LinkerdAddress;
      readonly weight: number;
      readonly metricLabels: Readonly<Record<string, string>>;
      readonly protocolHint?: object;
      readonly tlsIdentity?: object;
    }[];
    readonly metricLabels: Readonly<Record<string, string>>;
  };
  readonly remove?: { readonly addrs: readonly LinkerdAddress[] };
  readonly noEndpoints?: { readonly exists?: boolean };
  readonly fullyQualifiedName?: string;
  readonly opaqueProtocol?: boolean;
  readonly retryBudget?: { readonly retryRatio: number; readonly ttl: string };
  readonly dstOverrides?: readonly { readonly authority: string; readonly weight: number }[];
  readonly routes?: readonly object[];
  readonly endpoint?: { readonly addr: LinkerdAddress; readonly metricLabels: object };
  readonly parentRef?: object;
  readonly profileRef?: object;
}

interface LinkerdAddress {
  readonly ip: { readonly ipv4: number };
  readonly port: number;
}

type Line = { readonly message: LinkerdMessage } | { readonly code: string; readonly text: string };

/** Returns the path of the program that uses Linkerd's own bindings, and builds it if necessary. */
export function linkerdClient(): Promise<string> {
  return ensureGoProgram(sources, "client", { quick: true });
}

/** A stream that Linkerd's own bindings opened in a separate process. */
export class LinkerdStream {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor({ program, address, method, path, contextToken = "", tls }: LinkerdRequest) {
    const asked = ["-address", address, "-method", method, "-path", path, "-context-token", contextToken];
    this.#process = spawn(program, tls === undefined ? asked : [...asked, "-ca", tls.caFile], {
      env: { ...process.env, LINKERD_CLIENT_BEARER: tls?.bearer ?? "" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const { stdout } = this.#process;
    assert.ok(stdout);
    this.#lines = createInterface(stdout)[Symbol.asyncIterator]();
  }

  async next(): Promise<LinkerdMessage> {
    const line = await this.#read();
    assert.ok("message" in line, `the stream ended: ${JSON.stringify(line)}`);
    return line.message;
  }

  /** Reads to the end. Returns the name of the status. */
  async code(): Promise<string> {
    for (;;) {
      const line = await this.#read();
      if ("code" in line) return line.code;
    }
  }

  close(): void {
    this.#process.kill("SIGKILL");
  }

  async #read(): Promise<Line> {
    const { done, value } = await this.#lines.next();
    assert.ok(!done, "the client ended without a result");
    return JSON.parse(value) as Line;
  }
}
