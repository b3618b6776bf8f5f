import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { CertificateAuthority } from "@forage/identity/ca";
import { LOGIN_PATH, makeLoginCode } from "@forage/identity/workspace-login";
import { PortVisibility, WorkspaceManagerService, WorkspacePhase } from "@forage/proto/core";
import { startEtcd } from "../../hack/lib/etcd-server.ts";
import { freePorts } from "../../hack/lib/free-ports.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { leaderOf, type Member, startCluster } from "./support/coordinator-cluster.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { PodPortVisitor } from "./support/pod-port-visitor.ts";
import { FakeWorkspaceNode } from "./support/workspaces/fake-workspace-node.ts";
import { grpcNodeTransport } from "./support/workspaces/grpc-node-transport.ts";
import { runOverSsh, serveSessions } from "./support/workspaces/visits.ts";
import { aStart } from "./support/workspaces/workspace-world.ts";

/** The limit allows for other tests that run at the same time. */
const LIMIT_MS = 90_000;
const HOST = "prefix-1.ws.example.test";
const PORT_HOST = "8080-prefix-1.ws.example.test";
const ALL_PODS = { namespace: "", labels: {}, workload: "", node: "", name: "" };
const PUBLIC = { port: 8_080, visibility: PortVisibility.PUBLIC, url: "" };

test("reaches a workspace through each coordinator, and through the others after the leader was killed", async (t) => {
  const { members, ingressOf, sshOf, caPem } = await aCluster(t);
  const first = await leaderOf(members);
  const others = members.filter((member) => member !== first);
  const [second, third] = others;
  assert.ok(second && third);
  const port = await anApplication(t);
  const labels = { "forage.dev/workspaces": "true" };
  const agent = await HollowAgent.start(second, { tokenLabels: labels });
  const node = new FakeWorkspaceNode(grpcNodeTransport(second, agent));
  serveSessions(agent, port);
  const { ownerToken } = await second.calls(WorkspaceManagerService).startWorkspace(aStart());
  const visit = (member: Member, headers: Headers, path = "/", host = HOST) =>
    get(ingressOf(member), { headers: { ...headers, host }, path, caPem });
  const token = { "x-gitpod-owner-token": ownerToken };
  const answers = (member: Member) => async (): Promise<boolean> =>
    (await visit(member, token)).status === 200;

  for (const member of members) await waitFor(answers(member), wait("the workspace is reached"));
  const answer = await visit(third, token);
  assert.equal(answer.body, "hello 127.0.0.1 https", "the pod gets the address of the visitor");
  assert.equal((await visit(third, {})).status, 401);
  const login = loginPath(ownerToken);
  const entered = await visit(third, {}, login);
  assert.equal(entered.status, 303);
  const [cookie = ""] = entered.headers["set-cookie"]?.[0]?.split(";") ?? [];
  for (const member of members) {
    assert.equal((await visit(member, {}, login)).status, 403, "a link is used once at all coordinators");
    assert.equal((await visit(member, { cookie })).status, 200, "and logs in at all of them");
    assert.equal(await runOverSsh(sshOf(member), ownerToken, "echo hello"), "hello\n");
  }
  const { controlPort } = second.calls(WorkspaceManagerService);
  assert.equal((await visit(third, {}, "/", PORT_HOST)).status, 401);
  await controlPort({ id: "instance-1", expose: true, spec: PUBLIC });
  assert.equal((await visit(third, {}, "/", PORT_HOST)).status, 200, "the port is public");
  const [pod] = (await second.operator().listPods(ALL_PODS)).pods;
  assert.ok(pod);
  const opened = await PodPortVisitor.open(third.http, second.token, {
    ...{ namespace: pod.namespace, pod: pod.name, port },
  });
  for (const { http } of members) assert.match((await opened.visit(http)).body, /^hello/);
  const socket = await upgrade(ingressOf(third), { cookie }, caPem);
  const publicSocket = await upgrade(ingressOf(third), { host: PORT_HOST }, caPem);
  for (const it of [socket, publicSocket]) assert.equal(await it.echo("before"), "before");
  await controlPort({ id: "instance-1", expose: false, spec: PUBLIC });
  await publicSocket.closed;
  assert.equal(await socket.echo("still"), "still");

  first.end("SIGKILL");
  await socket.closed;
  await leaderOf(others);
  agent.close();
  node.close();
  const back = agent.again({ tokenLabels: labels });
  serveSessions(back, port);
  new FakeWorkspaceNode(grpcNodeTransport(second, back), node);
  for (const member of others) {
    await waitFor(answers(member), wait("the workspace is reached after the loss of the leader"));
    assert.equal((await visit(member, { cookie })).status, 200, "without another log-in");
    assert.equal((await visit(member, {}, login)).status, 403, "the link stays used");
    assert.equal((await visit(member, {}, "/", PORT_HOST)).status, 401, "the port stays private");
    assert.equal(await (await upgrade(ingressOf(member), { cookie }, caPem)).echo("after"), "after");
    assert.equal(await runOverSsh(sshOf(member), ownerToken, "echo hello"), "hello\n");
    assert.match((await opened.visit(member.http)).body, /^hello/, "the port of the pod stays open");
  }
  const { status } = await second.calls(WorkspaceManagerService).describeWorkspace({ id: "instance-1" });
  assert.equal(status?.phase, WorkspacePhase.RUNNING);
});

type Headers = Readonly<Record<string, string>>;

/** Starts three coordinators that serve workspaces, each at its own ports. */
async function aCluster(t: TestContext) {
  const etcd = await startEtcd();
  t.after(() => etcd.close());
  const dir = await mkdtemp(join(tmpdir(), "forage-followed-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const authority = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
  const { chainPem, keyPem } = await authority.issueServer({ dnsNames: [HOST, PORT_HOST], ipAddresses: [] });
  const [certificateFile, keyFile] = [join(dir, "chain.pem"), join(dir, "key.pem")];
  await writeFile(certificateFile, chainPem);
  await writeFile(keyFile, keyPem);
  const ports = await freePorts(6);
  const listen = (at: number): string => `127.0.0.1:${ports[at]}`;
  const workspacesOf = (at: number) => ({
    ...{ enabled: true, host: "example.test", content: { directory: join(dir, "content") } },
    ingress: { listen: listen(at), certificateFile, keyFile },
    ssh: { listen: listen(at + 3) },
  });
  const settingsOf = (at: number) => ({ workspaces: workspacesOf(at) });
  const members = await startCluster(t, { endpointsOf: () => [etcd.endpoint], settingsOf });
  return {
    members,
    caPem: authority.certPem,
    ingressOf: (member: Member) => ports[members.indexOf(member)],
    sshOf: (member: Member) => ports[members.indexOf(member) + 3],
  };
}

/**
 * Starts an application that answers with the visitor's address and scheme, and echoes over
 * WebSockets. Returns its port.
 */
async function anApplication(t: TestContext): Promise<number> {
  const server = createServer(({ headers }, response) =>
    response.end(`hello ${headers["x-forwarded-for"]} ${headers["x-forwarded-proto"]}`),
  );
  server.on("upgrade", (_request, socket) => {
    socket.on("error", () => socket.destroy());
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

function loginPath(ownerToken: string): string {
  return `${LOGIN_PATH}?code=${makeLoginCode({ ownerToken, host: HOST, nowMs: Date.now() })}`;
}

async function get(
  port: number | undefined,
  { headers, path, caPem }: { readonly headers: Headers; readonly path: string; readonly caPem: string },
) {
  const servername = HOST;
  const options = { host: "127.0.0.1", port, path, headers, servername, ca: caPem, agent: false };
  const sent = request({ ...options, timeout: LIMIT_MS }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of response) body += String(chunk);
  return { status: response.statusCode, headers: response.headers, body };
}

/** Opens a WebSocket to the application, which echoes. */
async function upgrade(port: number | undefined, headers: Headers, caPem: string) {
  const socket: TLSSocket = connect({ host: "127.0.0.1", port: port ?? 0, servername: HOST, ca: caPem });
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const all = { host: HOST, ...headers, connection: "Upgrade", upgrade: "websocket" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  socket.write(`GET /ws HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  const next = async (): Promise<string> => String((await once(socket, "data"))[0]);
  assert.match(await next(), /^HTTP\/1.1 101 /);
  return {
    closed,
    echo: (text: string): Promise<string> => {
      socket.write(text);
      return next();
    },
  };
}

function wait(what: string) {
  return { what, limitMs: LIMIT_MS };
}
