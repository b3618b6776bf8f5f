import { messageOf } from "@forage/common/message-of";
import {
  FollowerServiceService,
  type GetSupportFilesResponse,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import type { Coordinator } from "@forage/proto/forage/operator/v1/operator";
import { type Client, type ClientReadableStream, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { Clock } from "../time/clock.ts";
import type { SupportFile } from "./support-file.ts";

export interface CoordinatorFilesOptions {
  /** Returns a channel to the coordinator at HOST:PORT, which the caller closes. */
  readonly connect: (address: string) => Promise<Client>;
  readonly clock: Pick<Clock, "schedule" | "nowMs">;
}

const LIMIT_MS = 20_000;
const MAX_FILES = 20;
/** The size limit of all files of one coordinator: its kept log lines and its metrics. */
const MAX_BYTES = 12 * 1024 * 1024;
const FILE_NAME = /^[a-z0-9][a-z0-9._-]{0,60}$/;
/**
 * Matches host names. Other names are replaced, because they become directories on the machine
 * where the archive is unpacked.
 */
const DIRECTORY = /^[a-zA-Z0-9][a-zA-Z0-9.-]{0,62}$/;

/**
 * Returns the directory of each coordinator in the archive. Several coordinators of one host get
 * numbers.
 */
export function directoriesOf(coordinators: readonly Pick<Coordinator, "name">[]): readonly string[] {
  const used = new Set<string>();
  return coordinators.map(({ name }) => {
    const base = DIRECTORY.test(name) ? name : "coordinator";
    let directory = base;
    for (let next = 2; used.has(directory); next++) directory = `${base}-${next}`;
    used.add(directory);
    return `coordinators/${directory}`;
  });
}

/**
 * Returns the files of a follower. A file without content contains the reason why something is
 * missing.
 */
export async function coordinatorFiles(
  { addresses: [address] }: Pick<Coordinator, "addresses">,
  directory: string,
  signal: AbortSignal,
  { connect, clock }: CoordinatorFilesOptions,
): Promise<SupportFile[]> {
  const files: SupportFile[] = [];
  const missing = (problem: string): SupportFile => ({
    ...{ path: `${directory}/coordinator`, content: "", problem },
  });
  if (address === undefined) return [missing("it is at no known address")];
  let client: Client | undefined;
  let bytes = 0;
  try {
    client = await connect(address);
    for await (const { path, content, problem } of request(client, signal, clock)) {
      if (!FILE_NAME.test(path)) return [...files, missing("it sent a file with a malformed name")];
      bytes += content.length;
      const own = `${directory}/${path}`;
      const last = files.at(-1);
      const isSame = last?.path === own;
      if (bytes > MAX_BYTES || (!isSame && files.length >= MAX_FILES))
        return [...files, missing("it sent more than the limit of one coordinator")];
      const text = Buffer.from(content).toString("utf8");
      if (last === undefined || !isSame) files.push({ path: own, content: text, problem });
      else
        files[files.length - 1] = { ...last, content: last.content + text, problem: last.problem || problem };
    }
    return files;
  } catch (error) {
    return [...files, missing(explain(error))];
  } finally {
    client?.close();
  }
}

async function* request(
  client: Client,
  signal: AbortSignal,
  clock: Pick<Clock, "nowMs">,
): AsyncGenerator<GetSupportFilesResponse> {
  const { path, requestSerialize, responseDeserialize } = FollowerServiceService.getSupportFiles;
  const options = { deadline: clock.nowMs() + LIMIT_MS };
  const call: ClientReadableStream<GetSupportFilesResponse> = client.makeServerStreamRequest(
    ...([path, requestSerialize, responseDeserialize, {}, new Metadata(), options] as const),
  );
  // The reader below receives the error, unless it has ended.
  call.on("error", () => {});
  const leave = (): void => call.cancel();
  signal.addEventListener("abort", leave, { once: true });
  try {
    for await (const part of call) yield part as GetSupportFilesResponse;
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

function explain(error: unknown): string {
  const { code, details } = error as Partial<ServiceError>;
  switch (code) {
    case status.UNIMPLEMENTED:
      return "it sends no files: it leads now, or is of an older version";
    case status.DEADLINE_EXCEEDED:
      return `it did not send all files within ${LIMIT_MS / 1000} s`;
    default:
      return details ?? messageOf(error);
  }
}
