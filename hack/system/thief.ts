import { readFileSync } from "node:fs";
import { join } from "node:path";
import { argv, exit, stdout } from "node:process";
import { messageOf } from "@forage/common/message-of";
import { channelCredentials } from "@forage/identity/credentials";
import { createKeyAndCsr } from "@forage/identity/csr";
import { parseJoinToken } from "@forage/identity/join-token";
import { splitCertificates } from "@forage/identity/pem";
import {
  AgentServiceClient,
  type ConnectRequest,
  EnrollmentServiceClient,
  Hello,
  type JoinRequest,
  type JoinResponse,
  PodPhase,
  PodStatus,
} from "@forage/proto/forage/agent/v1/agent";

import { type ChannelCredentials, Metadata } from "@grpc/grpc-js";

/*
 * An attacker with stolen credentials, for tests. It runs in the network of the hosts:
 *   report DIR ADDRESS POD     connects with the node's identity in DIR, reports that the pod was removed, prints a line, and stays
 *                              until SIGTERM
 *   replay CA ADDRESS TOKEN NAME
 *                              joins, connects, sends the same join again, and prints its error
 */

const LIMIT_MS = 30_000;

async function report(dir: string, address: string, uid: string): Promise<void> {
  const pair = readFileSync(join(dir, "node.pem"), "utf8");
  const credentials = channelCredentials({
    caPem: readFileSync(join(dir, "ca.pem"), "utf8"),
    certPem: splitCertificates(pair).join("\n"),
    keyPem: pair.slice(0, pair.indexOf("-----BEGIN CERTIFICATE")),
  });
  const { send } = await connect(address, credentials);
  const pods = [PodStatus.fromPartial({ uid, phase: PodPhase.REMOVED })];
  send({ message: { $case: "podStatuses", value: { pods } } });
  stdout.write("reported\n");
  await new Promise(() => setInterval(() => {}, LIMIT_MS));
}

async function replay(caFile: string, address: string, token: string, nodeName: string): Promise<void> {
  const caPem = readFileSync(caFile, "utf8");
  const { id, secret } = parseJoinToken(token);
  const { keyPem, csrPem } = await createKeyAndCsr();
  const request = { tokenId: id, tokenSecret: secret, csr: Buffer.from(csrPem), nodeName };
  const client = new EnrollmentServiceClient(address, channelCredentials({ caPem }));
  const { certificatePem } = await joinFleet(client, request);
  await connect(address, channelCredentials({ caPem, certPem: certificatePem, keyPem }));
  const again = await joinFleet(client, request).then(
    () => "answered",
    (error: unknown) => messageOf(error),
  );
  stdout.write(`${again}\n`);
  exit(0);
}

function joinFleet(client: EnrollmentServiceClient, request: JoinRequest): Promise<JoinResponse> {
  return new Promise((resolve, reject) =>
    client.join(request, new Metadata(), (error, answer) => (error ? reject(error) : resolve(answer))),
  );
}

/** Resolves when the coordinator has welcomed the node. */
async function connect(
  address: string,
  credentials: ChannelCredentials,
): Promise<{ send(request: ConnectRequest): void }> {
  const stream = new AgentServiceClient(address, credentials).connect();
  const welcomed = new Promise<void>((resolve, reject) => {
    stream.once("data", () => resolve()).on("error", reject);
  });
  const node = { allocatable: { cpu: "1" }, address: "192.0.2.1" };
  const value = Hello.fromPartial({ sessionId: "thief-1", bootId: "thief", node });
  stream.write({ message: { $case: "hello", value } });
  await welcomed;
  return { send: (request) => void stream.write(request) };
}

const [, , command, ...args] = argv;
const [first = "", second = "", third = "", fourth = ""] = args;
await (command === "report" ? report(first, second, third) : replay(first, second, third, fourth));
