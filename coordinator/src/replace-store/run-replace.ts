import { type Config, ConfigError, hostPort } from "../config.ts";
import type { Clock } from "../time/clock.ts";
import { type AskOptions, ask } from "./ask.ts";
import { type ReplaceResult, replaceStore } from "./replace-store.ts";
import { hostSystemctl, systemdUnit } from "./service-unit.ts";

/** The options of a replacement on the command line. */
export interface ReplaceTask {
  readonly file: string;
  readonly epoch?: number | undefined;
  readonly yes: boolean;
  /** The systemd unit. Default: that of the package. */
  readonly unit: string | undefined;
}

const UNIT = "forage-coordinator.service";
const ANSWER_LIMIT_MS = 5_000;
const REVISION = /^forage_store_revision(?:\{[^}]*\})? (\d+)$/m;

/** Replaces the store of this host's coordinator. */
export async function runReplace(
  { file, epoch, yes, unit }: ReplaceTask,
  config: Config,
  clock: Clock,
  { input, output }: Pick<AskOptions, "input" | "output">,
): Promise<ReplaceResult> {
  const systemctl = hostSystemctl();
  if (systemctl === undefined && unit !== undefined)
    throw new ConfigError("--unit: systemd does not run here; stop the coordinator and start it by hand");
  return replaceStore({
    ...{ place: config, file, epoch, clock },
    unit: systemctl && systemdUnit(unit ?? UNIT, systemctl),
    servedRevision: () => servedRevision(config),
    ask: (question) => ask(question, { yes, input, output }),
    report: (line) => void output.write(`${line}\n`),
  });
}

/**
 * Returns the revision in the metrics of the running coordinator; undefined if it can't be read.
 */
async function servedRevision({ http }: Config): Promise<number | undefined> {
  const { host, port } = hostPort(http.listen);
  const reached =
    host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
  // The port's certificate is from the cluster's authority, which is not loaded here. The revision
  // is only information for the operator.
  if (http.tls) return undefined;
  try {
    const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
    const answer = await fetch(`http://${reached}:${port}/metrics`, { signal });
    const revision = REVISION.exec(await answer.text())?.[1];
    return revision === undefined ? undefined : Number(revision);
  } catch {
    return undefined;
  }
}
