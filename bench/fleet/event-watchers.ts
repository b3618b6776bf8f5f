import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { OperatorServiceClient, WatchEventsRequest } from "@forage/proto/forage/operator/v1/operator";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { anonymousMb, cpuSeconds, residentMb } from "../apply/process-cost.ts";
import { applyPods } from "./apply-pods.ts";
import { type CoordinatorProcess, startCoordinatorProcess } from "./coordinator-process.ts";
import { SocketAgents } from "./socket-agents.ts";

const STREAMS_PER_CONNECTION = 100;
const PODS = 300;
const LIMIT_MS = 300_000;
const SETTLE_MS = 15_000;
const METHOD = "/forage.operator.v1.OperatorService/WatchEvents";

/** The streams of one side, and a function that ends them. */
interface Watching {
  opened: number;
  failed: number;
  messages: number;
  readonly closes: (() => void)[];
}

/**
 * Measures the cost of watchers of events while an apply of 300 pods writes events. Half of the watchers never read. A
 * client of grpc-js would read messages anyway, so these are plain HTTP/2 streams.
 */
export async function measureEventWatchers(count: number, result: Record<string, number>): Promise<void> {
  const coordinator = await startCoordinatorProcess();
  const agents = new SocketAgents({ host: () => ({ address: "192.0.2.1", pods: PODS }) });
  const watching: Watching = { opened: 0, failed: 0, messages: 0, closes: [] };
  const { pid } = coordinator;
  try {
    await agents.start(coordinator, 2);
    const before = { residentMb: residentMb(pid), anonymousMb: anonymousMb(pid), cpu: cpuSeconds(pid) };
    for (let from = 0; from < count; from += STREAMS_PER_CONNECTION) {
      const streams = Math.min(STREAMS_PER_CONNECTION, count - from);
      if ((from / STREAMS_PER_CONNECTION) % 2 === 0) openReading(coordinator, streams, watching);
      else openIdle(coordinator, streams, watching);
      await waitFor(async () => watching.opened + watching.failed >= from + streams, {
        what: "the streams are open",
        limitMs: LIMIT_MS,
      });
    }
    const what = `${count} watchers of events, half of them not reading`;
    result[`${what}: refused`] = watching.failed;
    result[`${what}: processor time to open one (ms)`] = ((cpuSeconds(pid) - before.cpu) * 1000) / count;
    const opened = { cpu: cpuSeconds(pid), messages: watching.messages };
    const startedMs = performance.now();
    await applyPods(coordinator, PODS);
    result[`${what}: an apply of ${PODS} pods beside them (s)`] = (performance.now() - startedMs) / 1000;
    await delay(SETTLE_MS);
    const seconds = (performance.now() - startedMs) / 1000;
    result[`${what}: processor meanwhile (% of a core)`] = ((cpuSeconds(pid) - opened.cpu) * 100) / seconds;
    result[`${what}: batches that each reader got`] = (watching.messages - opened.messages) / (count / 2);
    result[`${what}: resident for one (kB)`] = ((residentMb(pid) - before.residentMb) * 1000) / count;
    result[`${what}: anonymous memory for one (kB)`] =
      ((anonymousMb(pid) - before.anonymousMb) * 1000) / count;
    result[`${what}: resident in all (MB)`] = residentMb(pid);
  } finally {
    for (const close of watching.closes) close();
    agents.close();
    await coordinator.close();
  }
}

function openReading({ address, caPem, token }: CoordinatorProcess, count: number, watching: Watching): void {
  const options = { "grpc.use_local_subchannel_pool": 1 };
  const client = new OperatorServiceClient(address, channelCredentials({ caPem }), options);
  watching.closes.push(() => client.close());
  for (let index = 0; index < count; index++) {
    const stream = client.watchEvents(WatchEventsRequest.fromPartial({}), bearerMetadata(token));
    stream.on("error", () => watching.failed++);
    stream.once("metadata", () => watching.opened++);
    stream.on("data", () => watching.messages++);
  }
}

function openIdle({ address, caPem, token }: CoordinatorProcess, count: number, watching: Watching): void {
  const session: ClientHttp2Session = connect(`https://${address}`, { ca: caPem });
  session.on("error", () => {});
  watching.closes.push(() => session.destroy());
  // An empty message requests all events from now on.
  const request = Buffer.alloc(5);
  for (let index = 0; index < count; index++) {
    const stream: ClientHttp2Stream = session.request({
      ":method": "POST",
      ":path": METHOD,
      "content-type": "application/grpc",
      te: "trailers",
      authorization: `Bearer ${token}`,
    });
    stream.on("error", () => watching.failed++);
    stream.once("response", () => watching.opened++);
    stream.pause().end(request);
  }
}
