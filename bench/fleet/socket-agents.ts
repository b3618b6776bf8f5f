import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { createKeyAndCsr } from "@forage/identity/csr";
import { parseJoinToken } from "@forage/identity/join-token";
import {
  AgentServiceClient,
  type ConnectRequest,
  type ConnectResponse,
  EnrollmentServiceClient,
  type JoinResponse,
} from "@forage/proto/forage/agent/v1/agent";
import {
  type CreateJoinTokenResponse,
  OperatorServiceClient,
} from "@forage/proto/forage/operator/v1/operator";
import { type ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import type { CoordinatorProcess } from "./coordinator-process.ts";
import { helloOf, PodAnswers } from "./pod-answers.ts";

/** Uses that one reusable token allows. */
const joinsPerToken = 100;
const joinsAtOnce = 16;
const heartbeatMs = 2_500;

/** Agents without hosts, each joined and with a channel of its own, in this process. */
export class SocketAgents {
  readonly #agents: { readonly close: () => void; readonly answers: PodAnswers }[] = [];
  /** Pods that were given to agents. */
  given = 0;

  get connected(): number {
    return this.#agents.length;
  }

  async start(coordinator: CoordinatorProcess, count: number): Promise<void> {
    for (let from = 0; from < count; from += joinsPerToken) {
      const token = await joinToken(coordinator);
      const names = Array.from({ length: Math.min(joinsPerToken, count - from) }, (_, i) => `n${from + i}`);
      while (names.length > 0)
        await Promise.all(
          names.splice(0, joinsAtOnce).map((name) => this.#startOne(coordinator, token, name)),
        );
    }
  }

  close(): void {
    for (const { close } of this.#agents) close();
  }

  async #startOne({ address, caPem }: CoordinatorProcess, token: string, name: string): Promise<void> {
    const { id, secret } = parseJoinToken(token);
    const { keyPem, csrPem } = await createKeyAndCsr();
    const enrolling = new EnrollmentServiceClient(address, channelCredentials({ caPem }));
    const request = { tokenId: id, tokenSecret: secret, csr: Buffer.from(csrPem), nodeName: name };
    const joined = await new Promise<JoinResponse>((resolve, reject) =>
      enrolling.join(request, new Metadata(), (error, answer) => (error ? reject(error) : resolve(answer))),
    );
    enrolling.close();
    const credentials = channelCredentials({ caPem, certPem: joined.certificatePem, keyPem });
    // Channels to one address with equal options would share their sockets.
    const client = new AgentServiceClient(address, credentials, { "grpc.use_local_subchannel_pool": 1 });
    const answers = new PodAnswers(() => this.given++);
    const stream = client.connect();
    await welcomed(stream, answers, name);
    const timer = setInterval(
      () =>
        stream.write({
          message: { $case: "heartbeat", value: { assignmentRevision: 0n, usage: undefined } },
        }),
      heartbeatMs,
    );
    const close = (): void => {
      clearInterval(timer);
      stream.cancel();
      client.close();
    };
    this.#agents.push({ close, answers });
  }
}

function welcomed(
  stream: ClientDuplexStream<ConnectRequest, ConnectResponse>,
  answers: PodAnswers,
  name: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.on("error", reject);
    stream.on("data", (response: ConnectResponse) => {
      if (response.message?.$case === "welcome") resolve();
      const answer = answers.answer(response);
      if (answer !== undefined) stream.write(answer);
    });
    stream.write({ message: { $case: "hello", value: helloOf(name) } });
  });
}

async function joinToken({ address, caPem, token }: CoordinatorProcess): Promise<string> {
  const operator = new OperatorServiceClient(address, channelCredentials({ caPem }));
  const request = { ttlSeconds: 600, nodeName: "", reusable: true, labels: {} };
  const answer = await new Promise<CreateJoinTokenResponse>((resolve, reject) =>
    operator.createJoinToken(request, bearerMetadata(token), (error, response) =>
      error ? reject(error) : resolve(response),
    ),
  );
  operator.close();
  return answer.token;
}
