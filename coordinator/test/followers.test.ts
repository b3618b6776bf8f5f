import assert from "node:assert/strict";
import { test } from "node:test";
import { createKeyAndCsr } from "@forage/identity/csr";
import { splitCertificates } from "@forage/identity/pem";
import { LogOptions, type ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import { ExecRequest, type ExecResponse, type LogsResponse } from "@forage/proto/forage/operator/v1/operator";
import { type ServiceError, status } from "@grpc/grpc-js";
import { startEtcd } from "../../hack/lib/etcd-server.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { leaderOf, type Member, startCluster } from "./support/coordinator-cluster.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import type { Lookup } from "./support/lookup.ts";
import { aContainerService, aRequest, aService } from "./support/requests.ts";

/** The limit allows for other tests that run at the same time. */
const LIMIT_MS = 90_000;
/** Longer than writes wait for etcd. */
const TRUST_SECONDS = 6;
const WEB = "web.shop.svc.cluster.local:80";

test("serves through followers while the leader is killed or paused, and one of them becomes the leader", async (t) => {
  const etcd = await startEtcd();
  t.after(() => etcd.close());
  const endpoints = [etcd.endpoint];
  const settings = { store: { etcd: { endpoints, trustTokensSeconds: TRUST_SECONDS } } };
  const cluster = await startCluster(t, { endpointsOf: () => endpoints, settings });
  const first = await leaderOf(cluster);
  const others = cluster.filter((member) => member !== first);
  const [second, third] = others;
  assert.ok(second && third);

  // Each call goes to a follower.
  const agent = await HollowAgent.start(second);
  const resources = [aService("web", "web"), aContainerService("web")];
  await second.forage.applyResources(aRequest("first", resources));
  const lookups = others.map((member) => ({ member, lives: member.lives, lookup: member.lookUp(WEB) }));
  for (const { lookup } of lookups) await lookup.until(() => lookup.endpoints.size === 2);
  const pods = await podNames(third);
  assert.equal(pods.length, 2);
  // Events are read from the follower's copy, and the dashboard's answer is from the leader.
  for (const [path, expected] of [
    ["/api/v1/events", 200],
    ["/dashboard/api/me", 401],
  ] as const)
    for (const member of others) assert.equal(await member.get(path), expected, path);
  // Every coordinator passes on the leader's list. On a busy machine, the leader may have changed.
  for (const member of others) {
    await untilListed(member, cluster);
    await waitFor(() => bundlesFollowers(member), wait("a support bundle has the files of the followers"));
    await waitFor(() => namesAll(member, cluster), wait("a new host gets the addresses of all coordinators"));
    const shown = await Promise.all(["metrics", "readyz"].map((path) => textOf(member, path)));
    assert.match(shown.join(), /forage_coordinator_leads_since_seconds\{coordinator="[^"]+"\} 1\d{9}/);
    assert.match(shown.join(), /forage_follower_behind_seconds \d/);
    assert.match(shown.join(), /"since":"20\d\d-/);
  }
  // The logs of a pod pass through the coordinator to which its agent is connected.
  const kept = await openLogs(second, agent, pods[0]);
  const passed = await openLogs(third, agent, pods[0]);
  for (const it of [kept, passed]) assert.equal(await it.echo("before"), "before");
  // Commands and their input pass through it as well.
  const ran = await openExec(third, agent, pods[0]);
  assert.equal(await ran.echo("before"), "before");
  assert.deepEqual(await ran.exit(3), { $case: "exitCode", value: 3 });
  const keptExec = await openExec(second, agent, pods[0]);
  const passedExec = await openExec(third, agent, pods[0]);
  for (const it of [keptExec, passedExec]) assert.equal(await it.echo("before"), "before");
  const before = lookups.map(({ lookup }) => lookup.updates.length);
  const ends = lookups.map(({ lookup }) => readOn(lookup));

  first.end("SIGKILL");
  const killedMs = performance.now();
  await leaderOf(others);
  t.diagnostic(`another coordinator led after ${Math.round(performance.now() - killedMs)} ms`);
  assert.equal(await kept.echo("after"), "after", "logs go on without the leader");
  assert.equal(await keptExec.echo("after"), "after", "a command goes on without the leader");
  assert.deepEqual(await keptExec.exit(0), { $case: "exitCode", value: 0 });
  await assert.rejects(passedExec.exit(0), { code: status.UNAVAILABLE }, "it was passed on to the leader");
  for (const it of [kept, passed, keptExec, passedExec, ran]) it.close();
  for (const member of others) await untilListed(member, others);
  agent.close();
  const back = agent.again({ behaviour: (pod) => agent.running(pod) });
  for (const member of others)
    await waitFor(async () => (await podNames(member)).join() === pods.join(), wait("the pods are the same"));
  await waitFor(() => recordsLeaders(third), wait("both leaders are events"));
  await waitFor(() => back.assignments.size === 2, wait("the agent is back"));
  await third.forage.applyResources(aRequest("more", [aService("more", "web")]));
  const more = others.map((member) => member.lookUp("more.shop.svc.cluster.local:80"));
  for (const lookup of more) await lookup.until(() => lookup.endpoints.size === 2);
  for (const [at, { member, lives, lookup }] of lookups.entries()) {
    // A coordinator that got no CPU time for longer than its lease has restarted.
    if (member.lives !== lives) continue;
    assert.deepEqual(lookup.updates.slice(before[at]), [], "a look-up goes on without a message");
    assert.equal(await Promise.race([ends[at], "open"]), "open");
  }

  await first.start();
  const leading = await leaderOf(cluster);
  const paused = leading.end("SIGSTOP");
  await leaderOf(cluster.filter((member) => member !== leading));
  paused.kill("SIGCONT");
  // The former leader can't write any more. Its process continues as a follower.
  const { starts } = leading;
  await waitFor(
    async () => (await leading.leads()) === false,
    wait("the coordinator that was paused follows"),
  );
  assert.equal(leading.starts, starts);
  await leaderOf(cluster);
  await waitFor(async () => (await podNames(leading)).join() === pods.join(), wait("the pods are the same"));

  etcd.pause();
  for (const member of cluster) {
    await waitFor(() => refusesTokens(member), wait("tokens that could be revoked are refused"));
    assert.equal(await member.get("/api/v1/events"), 503);
  }
  etcd.resume();
  for (const member of cluster)
    await waitFor(async () => (await podNames(member)).join() === pods.join(), wait("tokens are accepted"));
});

test("replaces the authority of three coordinators, and continues with the next leader", async (t) => {
  const etcd = await startEtcd();
  t.after(() => etcd.close());
  const cluster = await startCluster(t, { endpointsOf: () => [etcd.endpoint] });
  const first = await leaderOf(cluster);
  const [hostKey, ...more] = new Set(cluster.map((member) => member.readHostKey()));
  assert.match(hostKey ?? "", /OPENSSH PRIVATE KEY/, "there is a host key, also without `workspaces.ssh`");
  assert.equal(more.length, 0, "all coordinators have the same one");
  const others = cluster.filter((member) => member !== first);
  const [second, third] = others;
  assert.ok(second && third);
  const agent = await HollowAgent.start(second);
  for (const member of cluster) await untilListed(member, cluster);
  // The call is passed on to the leader, which waits for the others.
  await second.operator().rollAuthority({});
  for (const member of cluster) assert.equal(splitCertificates(member.readRoots()).length, 2);
  await waitFor(() => agent.renewalsAsked > 0, wait("the node is asked to renew"));
  const { keyPem, csrPem } = await createKeyAndCsr();
  const { certificatePem, caBundlePem } = await agent.renew(Buffer.from(csrPem));
  const pair = { certPem: certificatePem, keyPem };
  const asked = new HollowAgent(third.withRoots(caBundlePem), agent.name, pair, {});
  await waitFor(() => retires(second), wait("no node depends on the old one"));
  const isNewAlone = (member: Member): boolean => {
    const roots = splitCertificates(member.readRoots());
    return roots.length === 1 && !member.caPem.includes(roots[0] ?? "");
  };
  await waitFor(() => cluster.every(isNewAlone), wait("all have the new one alone"));
  assert.equal(asked.ended, undefined);

  first.end("SIGKILL");
  const reached = others.map((member) => member.withRoots(member.readRoots()));
  for (const member of reached)
    await waitFor(async () => {
      const { authorities } = await member
        .operator()
        .listAuthorities({})
        .catch(() => ({ authorities: [] }));
      return authorities.length === 1 && authorities[0]?.certificatePem === member.caPem;
    }, wait("the next leader has the new authority alone"));
});

/** Returns whether the old authority was retired. */
async function retires(member: Member): Promise<boolean> {
  return member
    .operator()
    .retireAuthority({})
    .then(
      () => true,
      () => false,
    );
}

/** Returns whether the member refuses a token because it may have been revoked. */
async function refusesTokens(member: Member): Promise<boolean> {
  const refusal = await member
    .operator()
    .listNamespaces({ namespace: "" })
    .then(
      () => undefined,
      (error: ServiceError) => error,
    );
  return refusal?.code === status.UNAVAILABLE && /the token may have been revoked/.test(refusal.details);
}

async function textOf({ http }: Member, path: string): Promise<string> {
  return (await fetch(`http://${http}/${path}`)).text();
}

/** Follows the logs of a pod through the member, served by the agent. */
async function openLogs(member: Member, agent: HollowAgent, pod = "") {
  const options = LogOptions.fromPartial({ follow: true });
  const reading = member.operator().logs({ namespace: "shop", pod, container: "", options });
  reading.on("error", () => {});
  const serving = await serveSession(agent, "logs");
  const answers = reading[Symbol.asyncIterator]();
  return {
    /** Sends a text, and returns it once it was received. */
    echo: async (text: string): Promise<string> => {
      serving.write({ frame: { $case: "stdout", value: Buffer.from(text) } });
      const { data } = (await answers.next()).value as LogsResponse;
      return data.toString();
    },
    close: () => {
      reading.cancel();
      serving.cancel();
    },
  };
}

/** Runs a command in a pod through the member. The agent's side writes what it reads. */
async function openExec(member: Member, agent: HollowAgent, pod = "") {
  const call = member.operator().exec();
  call.on("error", () => {});
  const options = { command: ["cat"], stdin: true };
  call.write(
    ExecRequest.fromPartial({ frame: { $case: "start", value: { namespace: "shop", pod, options } } }),
  );
  const serving = await serveSession(agent, "exec");
  serving.on("data", ({ frame }: ServeResponse) => {
    if (frame?.$case === "stdin") serving.write({ frame: { $case: "stdout", value: frame.value } });
  });
  const answers = call[Symbol.asyncIterator]();
  const next = async () => ((await answers.next()).value as ExecResponse).frame;
  return {
    /** Sends an input, and returns its output. */
    echo: async (text: string): Promise<string> => {
      call.write({ frame: { $case: "stdin", value: Buffer.from(text) } });
      const frame = await next();
      return frame?.$case === "stdout" ? frame.value.toString() : `${frame?.$case}`;
    },
    /** Ends the command. Returns the last message that the client receives. */
    exit: (exitCode: number) => {
      serving.write({ frame: { $case: "end", value: { exitCode, error: "" } } });
      return next();
    },
    close: () => {
      call.cancel();
      serving.cancel();
    },
  };
}

/** Opens the agent's stream for the session of this kind that the coordinator has requested. */
async function serveSession(agent: HollowAgent, kind: "exec" | "logs") {
  const session = await waitFor(
    () => agent.sessions.find((it) => it.kind?.$case === kind),
    wait(`the agent receives the request for a session of ${kind}`),
  );
  agent.sessions.length = 0;
  const serving = agent.client.serve();
  serving.on("error", () => {});
  serving.write({ frame: { $case: "sessionId", value: session.sessionId } });
  return serving;
}

/** Waits until the member lists these coordinators as ready, and one of them as the leader. */
async function untilListed(member: Member, expected: readonly Member[]): Promise<void> {
  const addresses = expected.map(({ address }) => address).sort();
  const isListed = async (): Promise<boolean> => {
    const { coordinators } = await member
      .operator()
      .listCoordinators({})
      .catch(() => ({ coordinators: [] }));
    const ready = coordinators.filter((it) => it.ready);
    const listed = ready.map((it) => it.addresses[0] ?? "").sort();
    return listed.join() === addresses.join() && ready.filter(({ leads }) => leads).length === 1;
  };
  await waitFor(isListed, wait(`the coordinator at ${member.address} lists ${addresses.join(", ")}`));
}

/** Returns whether a support bundle from this member has the complete files of two followers. */
async function bundlesFollowers(member: Member): Promise<boolean> {
  const files = new Map<string, string>();
  try {
    for await (const { path, content, problem } of member.operator().getSupportBundle({ nodes: [] }))
      if (path.startsWith("coordinators/")) files.set(path, `${files.get(path) ?? ""}${problem}${content}`);
  } catch {
    return false;
  }
  const about = [...files].filter(([path]) => path.endsWith("/about.json"));
  const logs = [...files].filter(([path]) => path.endsWith("/log.jsonl"));
  return (
    files.size === 8 &&
    about.length === 2 &&
    about.every(([, text]) => /"status": "following: .* leads"/.test(text)) &&
    logs.every(([, text]) => text.includes('"coordinator-follows"'))
  );
}

async function namesAll(member: Member, cluster: readonly Member[]): Promise<boolean> {
  const request = { ttlSeconds: 0, nodeName: "", reusable: false, labels: {}, taints: [] };
  const made = await member
    .operator()
    .createJoinToken(request)
    .catch(() => undefined);
  const expected = cluster.map(({ address }) => address).sort();
  return made?.allCoordinators.toSorted().join() === expected.join();
}

/**
 * Returns whether there are events of the first leader and of a follower that became the leader.
 */
async function recordsLeaders(member: Member): Promise<boolean> {
  const filter = { kind: "coordinator", name: "", type: "", reason: "LeadTaken", since: undefined };
  const { events } = await member
    .operator()
    .listEvents({ namespace: "", filter, after: 0n, limit: 100 })
    .catch(() => ({ events: [] }));
  const kinds = [/ leads since its start$/, / leads and has followed another coordinator before$/];
  return kinds.every((kind) => events.some(({ message }) => kind.test(message)));
}

/** Reads until the stream ends. */
async function readOn(lookup: Lookup): Promise<string> {
  while (await lookup.read().catch(() => false));
  return "ended";
}

/** Returns the names of the pods; empty while the coordinator does not know them. */
async function podNames(member: Member): Promise<string[]> {
  const { pods } = await member
    .operator()
    .listPods({ namespace: "shop", labels: {}, workload: "", node: "", name: "" })
    .catch(() => ({ pods: [] }));
  return pods.map(({ name }) => name).sort();
}

function wait(what: string) {
  return { what, limitMs: LIMIT_MS };
}
