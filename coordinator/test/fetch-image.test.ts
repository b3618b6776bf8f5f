import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { NodeReport, type ServeRequest, type SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { status } from "@grpc/grpc-js";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest } from "./support/requests.ts";
import { collected, until } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const digest = (bytes: Buffer) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
const MANIFEST = Buffer.from("manifest");
const INDEX = Buffer.from("index");
const IMAGE = `registry.example/team/app@${digest(INDEX)}`;
const TAGGED = "docker.io/team/helper:v1";

test(
  "sends a node its pod's image from another node, by a digest, or by a tag if it trusts that node",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const n1 = await HollowAgent.start(world, { name: "n1" });
    const n2 = await HollowAgent.start(world, { name: "n2" });
    n1.say({
      $case: "nodeReport",
      value: NodeReport.fromPartial({ images: [IMAGE, TAGGED], architecture: "amd64" }),
    });
    const scaling = { replicas: 1 };
    const podConfig = { nodeSelector: { "kubernetes.io/hostname": "n2" } };
    const request = aRequest("a1", [
      aContainerService("web", {
        ...{ scaling, podConfig, container: { name: "main", image: IMAGE } },
        sidecars: [{ name: "helper", image: "team/helper:v1" }],
      }),
    ]);
    const { namespace } = request;
    await world.forage().applyResources(request);
    await until("n2 has the pod, and n1 reports the image", async () => {
      const { nodes } = await world.operator().listNodes({});
      const found = nodes.find(({ name }) => name === "n1");
      return n2.assignments.size === 1 && found?.report?.images.includes(IMAGE) === true;
    });
    const received: string[] = [];
    n1.onSession = (session) => {
      const description = { manifest: MANIFEST, config: Buffer.from("{}"), indexes: [INDEX] };
      const send = serve(n1, session, ({ imageMissing }) => {
        if (imageMissing === undefined) return;
        send({ $case: "stdout", value: Buffer.from(`layer ${imageMissing.digests}`) });
        send({ $case: "end", value: { exitCode: 0, error: "" } });
      });
      send({ $case: "imageDescription", value: description });
    };
    n2.onSession = (session) => {
      const asked = session.kind?.$case === "imagePush" ? session.kind.value : undefined;
      received.push(`${asked?.image} ${asked?.namespace} ${asked?.fromNode} ${asked?.indexes}`);
      const send = serve(n2, session, ({ stdin, stdinClosed }) => {
        if (stdin !== undefined) received.push(stdin.toString());
        if (stdinClosed) send({ $case: "end", value: { exitCode: 0, error: "" } });
      });
      send({ $case: "imageMissing", value: { digests: ["sha256:1"] } });
    };

    const fetch = (agent: HollowAgent, image: string, of: string, tagSources: string[] = []) =>
      collected(agent.client.fetchImage({ image, namespace: of, tagSources }));
    const progress = await fetch(n2, IMAGE, namespace);

    assert.deepEqual(received, [`${IMAGE} ${namespace} true index`, "layer sha256:1"]);
    assert.equal((progress[0] as { fromNode?: string })?.fromNode, "n1");
    const refused = (code: status, message: RegExp) => (error: { code?: number; message: string }) =>
      error.code === code && message.test(error.message);
    await fetch(n2, TAGGED, namespace, ["n1", "n3"]);
    assert.deepEqual(received.slice(2), [`${TAGGED} ${namespace} true index`, "layer sha256:1"]);
    await assert.rejects(fetch(n2, TAGGED, namespace), refused(status.INVALID_ARGUMENT, /digest/));
    await assert.rejects(
      fetch(n2, TAGGED, namespace, ["n2", "n3"]),
      refused(status.NOT_FOUND, /no connected node of images.tagsFrom/),
    );
    await assert.rejects(
      fetch(n2, "docker.io/team/other:v1", namespace, ["n1"]),
      refused(status.PERMISSION_DENIED, /no pod of the namespace/),
    );
    await assert.rejects(
      fetch(n2, IMAGE, "other"),
      refused(status.PERMISSION_DENIED, /no pod of the namespace other/),
    );
    await assert.rejects(
      fetch(n1, IMAGE, namespace),
      refused(status.PERMISSION_DENIED, /no pod of the namespace/),
    );
    n1.close();
    await until("n1 is away", async () => {
      const { nodes } = await world.operator().listNodes({});
      return nodes.find(({ name }) => name === "n1")?.ready === false;
    });
    await assert.rejects(
      fetch(n2, IMAGE, namespace),
      refused(status.NOT_FOUND, /no other connected node has the image/),
    );
  },
);

interface Received {
  readonly imageMissing?: { readonly digests: readonly string[] };
  readonly stdin?: Buffer;
  readonly stdinClosed?: boolean;
}

/** Opens the agent's stream of a session. Returns a function that sends on it. */
function serve(agent: HollowAgent, { sessionId }: SessionRequest, onFrame: (frame: Received) => void) {
  const stream = agent.client.serve();
  stream.on("error", () => {});
  stream.on("data", ({ frame }: { frame?: { $case: string; value: unknown } }) => {
    if (frame !== undefined) onFrame({ [frame.$case]: frame.value });
  });
  stream.write({ frame: { $case: "sessionId", value: sessionId } });
  return (frame: NonNullable<ServeRequest["frame"]>): void => {
    stream.write({ frame });
    if (frame.$case === "end") stream.end();
  };
}
