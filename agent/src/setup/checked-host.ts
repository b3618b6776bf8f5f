import { lookup } from "node:dns/promises";
import { access, constants, readFile, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { connect } from "node:tls";
import { messageOf } from "@forage/common/message-of";
import { encode } from "dns-packet";
import type { DiskSpace } from "../capacity/disk-pressure.ts";
import { queryOver } from "../dns/query-server.ts";
import { measurePath, type PathSizes } from "../examine/probe-path.ts";
import { runProgram } from "../programs/run-program.ts";
import type { CheckedHost, CommandOutcome } from "./check/finding.ts";

const COMMAND_LIMIT_MS = 20_000;
const OUTPUT_BYTES_MAX = 1024 * 1024;
const CONNECT_LIMIT_MS = 10_000;
const ANSWER_LIMIT_MS = 2_000;
const NAME_SERVER_ATTEMPTS = 2;
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Returns this host, for the checks. */
export function checkedHost(): CheckedHost {
  return {
    readText: (path) => readFile(path, "utf8").catch(() => undefined),
    exists: (path) =>
      access(path).then(
        () => true,
        () => false,
      ),
    isWritable: (path) =>
      access(path, constants.W_OK).then(
        () => true,
        () => false,
      ),
    run,
    listenProblem,
    agentAnswers: async (host, port) => {
      const name = host.includes(":") ? `[${host}]` : host;
      const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
      const answer = await fetch(`http://${name}:${port}/metrics`, { signal }).catch(() => undefined);
      return (await answer?.text().catch(() => ""))?.includes("forage_agent_") ?? false;
    },
    space,
    certificatePeriod,
    nameServerAnswers,
    pathSizes: async (host, port) => measureFrom((await lookup(host)).address, port),
    nowMs: Date.now,
  };
}

/** Measures the path MTU to an address. */
export function measureFrom(address: string, port: number): Promise<PathSizes> {
  return measurePath(address, port, async (file, args) => {
    const { ok, text } = await run(file, args);
    if (!ok) throw new Error(`${file}: ${text}`);
    return text;
  });
}

async function run(file: string, args: readonly string[]): Promise<CommandOutcome> {
  const { exitCode, stdout, stderr, error, killedFor } = await runProgram(file, args, {
    env: { PATH, LC_ALL: "C" },
    timeoutMs: COMMAND_LIMIT_MS,
    outputBytesMax: OUTPUT_BYTES_MAX,
  });
  if (exitCode === 0) return { ok: true, text: stdout.trimEnd() };
  return { ok: false, text: stderr.trimEnd() || error?.message || killedFor || "failed" };
}

/** Reports whether the name server answers a query for the root servers, which every name server answers or refuses. */
async function nameServerAnswers(address: string): Promise<boolean> {
  const question = encode({
    type: "query",
    flags: 0x100,
    questions: [{ type: "NS", name: ".", class: "IN" }],
  });
  for (let i = 0; i < NAME_SERVER_ATTEMPTS; i++)
    if ((await queryOver()(address, question, "udp", ANSWER_LIMIT_MS)) !== undefined) return true;
  return false;
}

function listenProblem(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", (error) => resolve(messageOf(error)));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

/** Returns the disk space. If the directory doesn't exist yet, uses the nearest existing parent. */
async function space(dir: string): Promise<DiskSpace | undefined> {
  for (let path = dir; ; path = dirname(path)) {
    try {
      const { bsize, blocks, bavail, files, ffree } = await statfs(path);
      const bytes = { totalBytes: blocks * bsize, availableBytes: bavail * bsize };
      return { ...bytes, totalInodes: files, availableInodes: ffree };
    } catch {
      if (path === dirname(path)) return undefined;
    }
  }
}

/**
 * Returns the validity of a server's certificate. Nothing is sent, and the certificate isn't verified here: a join
 * checks it against the token's fingerprint.
 */
function certificatePeriod(host: string, port: number): Promise<{ fromMs: number; toMs: number }> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port,
      rejectUnauthorized: false,
      ALPNProtocols: ["h2"],
      timeout: CONNECT_LIMIT_MS,
    });
    const end = (finish: () => void): void => {
      socket.destroy();
      finish();
    };
    socket.once("timeout", () => end(() => reject(new Error("no answer"))));
    socket.once("error", (error) => end(() => reject(error)));
    socket.once("secureConnect", () => {
      const { valid_from: from, valid_to: to } = socket.getPeerCertificate();
      end(() => resolve({ fromMs: Date.parse(from), toMs: Date.parse(to) }));
    });
  });
}
