import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  LogOptions,
  type ServeRequest,
  type ServeResponse,
  type SessionRequest,
} from "@forage/proto/forage/agent/v1/agent";
import type { ExecRequest, ExecResponse } from "@forage/proto/forage/operator/v1/operator";
import { type ClientDuplexStream, status } from "@grpc/grpc-js";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { collected, settled, until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const options = LogOptions.fromPartial({ follow: true, tailLines: 5 });

test("streams logs from the agent to the client until the agent ends them", LIMIT, async (t) => {
  const { world, agent, pod } = await setUp(t);
  const reading = collected(world.operator().logs({ namespace: "shop", pod, container: "main", options }));
  const session = await sessionOf(agent);
  assert.partialDeepStrictEqual(session, { container: "main", kind: { $case: "logs", value: options } });
  const stream = serve(agent, session);
  stream.write({ frame: { $case: "stdout", value: Buffer.from("one\n") } });
  stream.write({ frame: { $case: "stderr", value: Buffer.from("two\n") } });
  stream.write({ frame: { $case: "end", value: { exitCode: 0, error: "" } } });
  stream.end();
  assert.equal(textOf(await reading), "one\ntwo\n");
});

test(
  "finds a pod by its name, its uid or the beginning of it, and answers NOT_FOUND with a hint for others",
  LIMIT,
  async (t) => {
    const { world, agent, pod } = await setUp(t);
    const uid = [...agent.assignments.values()].find(({ name }) => name === pod)?.uid ?? "";
    for (const name of [pod, uid, uid.slice(0, 8)]) {
      const call = world.operator().logs({ namespace: "shop", pod: name, container: "", options: undefined });
      call.on("error", () => {});
      await until("the agent is asked", () => agent.sessions.length > 0);
      assert.equal(agent.sessions.shift()?.podUid, uid);
      call.cancel();
    }
    const logs = (p: string, container = "") =>
      collected(world.operator().logs({ namespace: "shop", pod: p, container, options }));
    await assert.rejects(logs("web"), { code: status.NOT_FOUND, details: /did you mean web-/ });
    await assert.rejects(logs(""), { code: status.INVALID_ARGUMENT });
    await assert.rejects(logs(pod, "side"), { code: status.NOT_FOUND, details: /it has main/ });
  },
);

test("reports why a pod without a node, or whose node is away, has no logs", LIMIT, async (t) => {
  const { world, agent, pod } = await setUp(t);
  const logs = (name: string) =>
    collected(world.operator().logs({ namespace: "shop", pod: name, container: "", options }));
  agent.close();
  await until("the node is away", async () =>
    logs(pod).then(
      () => false,
      (error: { code: status }) => error.code === status.UNAVAILABLE,
    ),
  );
  const resources = { requests: { cpu: "900", memory: "1Gi" } };
  const container = { name: "main", image: "app:v1", resources };
  await world.forage().applyResources(aRequest("a2", [aContainerService("big", { container })]));
  const request = { namespace: "shop", labels: {}, workload: "big", node: "", name: "" };
  await until("it waits", async () => (await world.operator().listPods(request)).pods.length > 0);
  const [big] = (await world.operator().listPods(request)).pods;
  await assert.rejects(logs(big?.name ?? ""), {
    code: status.FAILED_PRECONDITION,
    details: /has no node yet/,
  });
});

test("reports an agent's error, and the loss of an agent during a session", LIMIT, async (t) => {
  const { world, agent, pod } = await setUp(t);
  const logs = () => collected(world.operator().logs({ namespace: "shop", pod, container: "", options }));
  const refused = logs();
  const stream = serve(agent, await sessionOf(agent));
  stream.write({ frame: { $case: "end", value: { exitCode: 0, error: "the container was never started" } } });
  await assert.rejects(refused, { code: status.FAILED_PRECONDITION, details: /never started/ });

  const cut = logs();
  cut.catch(() => {});
  const second = serve(agent, await sessionOf(agent));
  second.write({ frame: { $case: "stdout", value: Buffer.from("half a li") } });
  await settled();
  second.cancel();
  await assert.rejects(cut, { code: status.UNAVAILABLE });
});

test("waits a limited time for an agent to open a session", LIMIT, async (t) => {
  const { world, agent, pod } = await setUp(t, { heartbeatIntervalSeconds: 60 });
  const waiting = collected(world.operator().logs({ namespace: "shop", pod, container: "", options }));
  waiting.catch(() => {});
  const session = await sessionOf(agent);
  world.clock.skip(10_000);
  await assert.rejects(waiting, { code: status.UNAVAILABLE, details: /did not open the session/ });
  await assert.rejects(collected(serve(agent, session)), { code: status.NOT_FOUND });
});

test("ends the agent's stream when the client disconnects", LIMIT, async (t) => {
  const { world, agent, pod } = await setUp(t);
  const call = world.operator().logs({ namespace: "shop", pod, container: "", options });
  call.on("error", () => {});
  const stream = serve(agent, await sessionOf(agent));
  const heard = collected(stream);
  stream.write({ frame: { $case: "stdout", value: Buffer.from("line\n") } });
  for await (const _ of call) break;
  call.cancel();
  assert.deepEqual(await heard, []);
});

test(
  "slows the agent for a client that does not read, and delivers everything once it does",
  LIMIT,
  async (t) => {
    const { world, agent, pod } = await setUp(t);
    const call = world.operator().logs({ namespace: "shop", pod, container: "", options });
    const stream = serve(agent, await sessionOf(agent));
    const chunk = Buffer.alloc(32 * 1024, "x");
    const chunks = 400;
    const reading = call[Symbol.asyncIterator]();
    let sent = 0;
    let stuck = false;
    const sending = (async () => {
      for (; sent < chunks; sent++) {
        if (stream.write({ frame: { $case: "stdout", value: chunk } })) continue;
        stuck = true;
        await new Promise<void>((resolve) => stream.once("drain", resolve));
      }
      stream.write({ frame: { $case: "end", value: { exitCode: 0, error: "" } } });
    })();
    // The client reads one message, and then no more.
    let bytes = (await reading.next()).value?.data.length ?? 0;
    await until("the agent is held back", () => stuck);
    let before = -1;
    // The agent is stopped permanently: the number of chunks in transit becomes constant.
    await until("nothing moves any more", async () => {
      const still = before === sent;
      before = sent;
      for (let turns = 0; turns < 200; turns++) await settled();
      return still;
    });
    assert.ok(sent < chunks, `${sent} of ${chunks} chunks were taken`);
    for (let next = await reading.next(); !next.done; next = await reading.next())
      bytes += next.value.data.length;
    await sending;
    assert.equal(bytes, chunks * chunk.length);
  },
);

test("transfers a command's input and output, and its exit code last", LIMIT, async (t) => {
  const { world, agent, pod } = await setUp(t);
  const call = startExec(world, pod, {
    command: ["sh", "-c", "cat"],
    stdin: true,
    tty: true,
    size: { columns: 80, rows: 24 },
  });
  const session = await sessionOf(agent);
  assert.partialDeepStrictEqual(session.kind, {
    $case: "exec",
    value: { command: ["sh", "-c", "cat"], stdin: true, tty: true, size: { columns: 80, rows: 24 } },
  });
  const stream = serve(agent, session);
  const input: ServeResponse[] = [];
  stream.on("data", (frame: ServeResponse) => input.push(frame));
  call.write({ frame: { $case: "stdin", value: Buffer.from("hi") } });
  call.write({ frame: { $case: "resize", value: { columns: 100, rows: 30 } } });
  call.end();
  await until("all input is there", () => input.length === 3);
  assert.deepEqual(
    input.map(({ frame }) => frame),
    [
      { $case: "stdin", value: Buffer.from("hi") },
      { $case: "resize", value: { columns: 100, rows: 30 } },
      { $case: "stdinClosed", value: true },
    ],
  );
  stream.write({ frame: { $case: "stdout", value: Buffer.from("hi") } });
  stream.write({ frame: { $case: "stderr", value: Buffer.from("!") } });
  stream.write({ frame: { $case: "end", value: { exitCode: 137, error: "" } } });
  const frames = (await collected(call)).map(({ frame }) => frame);
  assert.deepEqual(frames, [
    { $case: "stdout", value: Buffer.from("hi") },
    { $case: "stderr", value: Buffer.from("!") },
    { $case: "exitCode", value: 137 },
  ]);
});

for (const exitCode of [0, 1, 127, 255]) {
  test(`returns the exit code ${exitCode}`, LIMIT, async (t) => {
    const { world, agent, pod } = await setUp(t);
    const call = startExec(world, pod, { command: ["x"] });
    const stream = serve(agent, await sessionOf(agent));
    stream.write({ frame: { $case: "end", value: { exitCode, error: "" } } });
    assert.deepEqual((await collected(call)).at(-1)?.frame, { $case: "exitCode", value: exitCode });
  });
}

test("refuses a session without a command, and impossible requests", LIMIT, async (t) => {
  const { world, pod } = await setUp(t);
  const invalid = { code: status.INVALID_ARGUMENT };
  const early = world.operator().exec();
  early.write({ frame: { $case: "stdin", value: Buffer.from("x") } });
  await assert.rejects(collected(early), invalid);
  const nothing = world.operator().exec();
  nothing.end();
  await assert.rejects(collected(nothing), invalid);
  await assert.rejects(collected(startExec(world, pod, { command: [] })), invalid);
  await assert.rejects(collected(startExec(world, pod, { command: ["x".repeat(140_000)] })), invalid);
  await assert.rejects(collected(startExec(world, "nope", { command: ["x"] })), { code: status.NOT_FOUND });
});

test("refuses a node that serves another node's session", LIMIT, async (t) => {
  const { world, agent, pod } = await setUp(t);
  const other = await HollowAgent.start(world, { name: "n2" });
  const call = world.operator().logs({ namespace: "shop", pod, container: "", options });
  call.on("error", () => {});
  const session = await sessionOf(agent);
  await assert.rejects(collected(serve(other, session)), { code: status.NOT_FOUND });
  const stream = serve(agent, session);
  stream.write({ frame: { $case: "end", value: { exitCode: 0, error: "" } } });
  assert.deepEqual(await collected(call), []);
});

async function setUp(t: TestContext, overrides: Parameters<typeof startWorld>[2] = {}) {
  const world = await startWorld(t, {}, overrides);
  const agent = await HollowAgent.start(world);
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await watchToEnd(world, rolloutId);
  const pod = [...agent.assignments.values()][0]?.name ?? "";
  return { world, agent, pod };
}

async function sessionOf(agent: HollowAgent): Promise<SessionRequest> {
  await until("the agent is asked", () => agent.sessions.length > 0);
  const session = agent.sessions.shift();
  assert.ok(session);
  return session;
}

/** Opens the agent's stream for a session, with its first frame. */
function serve(
  agent: HollowAgent,
  { sessionId }: SessionRequest,
): ClientDuplexStream<ServeRequest, ServeResponse> {
  const stream = agent.client.serve();
  stream.on("error", () => {});
  stream.write({ frame: { $case: "sessionId", value: sessionId } });
  return stream;
}

function startExec(
  world: World,
  pod: string,
  options: { command: string[]; stdin?: boolean; tty?: boolean; size?: { columns: number; rows: number } },
): ClientDuplexStream<ExecRequest, ExecResponse> {
  const call = world.operator().exec();
  call.on("error", () => {});
  const value = { stdin: false, tty: false, size: undefined, ...options };
  call.write({ frame: { $case: "start", value: { namespace: "shop", pod, container: "", options: value } } });
  return call;
}

function textOf(responses: readonly { readonly data: Uint8Array }[]): string {
  return Buffer.concat(responses.map(({ data }) => data)).toString();
}
