import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { access, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { systemClock } from "../clock.ts";
import { type Config, readConfig } from "../config.ts";
import type { JoiningHost, Readiness } from "./join-host.ts";
import { SetupError } from "./setup-error.ts";

const SYSTEMCTL_LIMIT_MS = 150_000;
const ANSWER_LIMIT_MS = 5_000;
/** The size of a token with line breaks around it, with room to spare. */
const TOKEN_MAX_BYTES = 4_096;

/** Returns this host, for a join. */
export function joiningHost(): JoiningHost {
  return {
    readText: async (path) => {
      const whole = path === "-" ? await readLine() : await readFile(path, "utf8");
      return whole.slice(0, TOKEN_MAX_BYTES);
    },
    writeText: async (path, content, mode) => {
      await mkdir(dirname(path), { recursive: true, mode: 0o755 });
      await writeFile(`${path}.partial`, content, { mode });
      await rename(`${path}.partial`, path);
    },
    remove: (path) => rm(path, { force: true }),
    exists: (path) =>
      access(path).then(
        () => true,
        () => false,
      ),
    readConfig: (file, flags) => readConfig(["--config", file, ...flags], process.env, hostname()),
    systemctl: existsSync("/run/systemd/system") ? systemctl : undefined,
    readiness: readReadiness,
    clock: systemClock,
    report: (line) => process.stderr.write(`${line}\n`),
  };
}

/** Reads standard input up to the first line break, because a terminal stays open after it. */
async function readLine(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write("the token of `forage node add`: ");
  let line = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    line += String(chunk);
    if (line.includes("\n") || line.length > TOKEN_MAX_BYTES) break;
  }
  return line.split("\n", 1)[0] ?? "";
}

async function systemctl(...args: readonly string[]): Promise<void> {
  await promisify(execFile)("systemctl", [...args], { timeout: SYSTEMCTL_LIMIT_MS }).catch(
    (cause: unknown) => {
      const said = cause instanceof Error && "stderr" in cause ? String(cause.stderr).trim() : String(cause);
      throw new SetupError(`systemctl ${args.join(" ")}: ${said}`, { cause });
    },
  );
}

/**
 * Queries the agent's own readiness, which includes its connection to the coordinator and a response of the runtime.
 */
async function readReadiness({ http: { listen } }: Config): Promise<Readiness | undefined> {
  if (listen === undefined)
    throw new SetupError("http.listen is off, so the agent's readiness can't be read");
  const host = listen.host.includes(":") ? `[${listen.host}]` : listen.host;
  try {
    const url = `http://${host}:${listen.port}/readyz`;
    const answer: unknown = await (await fetch(url, { signal: AbortSignal.timeout(ANSWER_LIMIT_MS) })).json();
    if (typeof answer !== "object" || answer === null || !("reasons" in answer)) return undefined;
    if (!Array.isArray(answer.reasons)) return undefined;
    const isRefused = "refused" in answer && answer.refused === true;
    return { reasons: answer.reasons.map(String), isRefused };
  } catch {
    return undefined;
  }
}
