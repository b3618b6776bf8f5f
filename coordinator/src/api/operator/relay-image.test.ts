import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { ServeRequest, ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import { Channel } from "../../link/channel.ts";
import { assertNamedDigest, relayImage } from "./relay-image.ts";
import type { PodSession } from "./sessions.ts";

type Output = NonNullable<ServeRequest["frame"]>;

const DESCRIPTION = { manifest: Buffer.from("manifest"), config: Buffer.from("config"), indexes: [] };
const DESCRIBED: Output = { $case: "imageDescription", value: DESCRIPTION };
const ENDED: Output = { $case: "end", value: { exitCode: 0, error: "" } };
const failed = (error: string): Output => ({ $case: "end", value: { exitCode: 1, error } });
const data = (text: string): Output => ({ $case: "stdout", value: Buffer.from(text) });
const missing = (...digests: string[]): Output => ({ $case: "imageMissing", value: { digests } });

test("sends the missing layers from one node to the other, and marks their end", async () => {
  const source = aNode();
  const target = aNode();
  source.sends(DESCRIBED, data("one"), data("two"), ENDED);
  target.sends(missing("sha256:1"));
  const relayed = relayImage(source.session, (description) => {
    assert.deepEqual(description, DESCRIPTION);
    return target.session;
  });
  const received = await target.receivesUntil("stdinClosed");
  target.sends(ENDED);
  await relayed;
  assert.deepEqual(received, ["stdin one", "stdin two", "stdinClosed"]);
  assert.deepEqual(await source.receivesUntil("imageMissing"), ["imageMissing sha256:1"]);
});

test("succeeds if the target has the image already", async () => {
  const source = aNode();
  const target = aNode();
  source.sends(DESCRIBED, ENDED);
  target.sends(missing(), ENDED);
  await relayImage(source.session, () => target.session);
});

test("throws the failure of the source, and never marks the layers as complete", async () => {
  for (const end of [failed("layer is not here"), undefined]) {
    const source = aNode();
    const target = aNode();
    source.sends(DESCRIBED, data("one"), ...(end === undefined ? [] : [end]));
    if (end === undefined) source.session.fromAgent.close();
    target.sends(missing("sha256:1"));
    const message = end === undefined ? /ended the transfer of the image early/ : /layer is not here/;
    await assert.rejects(
      relayImage(source.session, () => target.session),
      message,
    );
    assert.deepEqual(await target.receivesUntil("stdinClosed"), ["stdin one"]);
  }
});

test("throws the failure of the target, and ends the source", async () => {
  const source = aNode();
  const target = aNode();
  source.sends(DESCRIBED, data("one"));
  target.sends(missing("sha256:1"), failed("the node's disk is full"));
  const ended = source.receivesUntil("stdinClosed");
  // The error of a broken stream is reported later than its cause.
  void ended.then(() => source.session.fromAgent.close(new Error("the agent's stream broke")));
  await assert.rejects(
    relayImage(source.session, () => target.session),
    /the node's disk is full/,
  );
  await ended;
});

test("throws if the target's stream ends without a result, and ends the source", async () => {
  const source = aNode();
  const target = aNode();
  source.sends(DESCRIBED, ENDED);
  target.sends(missing("sha256:1"));
  const relayed = relayImage(source.session, () => target.session);
  await target.receivesUntil("stdinClosed");
  target.session.fromAgent.close();
  await assert.rejects(relayed, { code: "UNAVAILABLE", message: /ended the transfer of the image early/ });
});

test("opens no target if the source doesn't have the image", async () => {
  const source = aNode();
  source.sends(failed("image is not on this node"));
  await assert.rejects(
    relayImage(source.session, () => assert.fail()),
    /image is not on this node/,
  );
});

test("rejects a manifest whose digest differs from that in the image's name", () => {
  const { manifest, config } = DESCRIPTION;
  const named = (bytes: Buffer) => `web@sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  const index = Buffer.from("index");
  assertNamedDigest("web:1", DESCRIPTION, "n1");
  assertNamedDigest(named(manifest), DESCRIPTION, "n1");
  assertNamedDigest(named(index), { manifest, config, indexes: [index] }, "n1");
  const refused = { code: "INVALID", message: /node n1 has the digest sha256:[0-9a-f]{64} for web@sha256/ };
  assert.throws(() => assertNamedDigest(named(index), DESCRIPTION, "n1"), refused);
  assert.throws(
    () => assertNamedDigest(named(manifest), { manifest, config, indexes: [index] }, "n1"),
    refused,
  );
});

/** Returns the coordinator's end of a session, and what its node sends and receives. */
function aNode() {
  const toAgent = new Channel<ServeResponse>(16);
  const fromAgent = new Channel<ServeRequest>(16);
  const session: PodSession = { toAgent, fromAgent, endUse: () => {} };
  return {
    session,
    sends: (...frames: readonly Output[]) => {
      for (const frame of frames) void fromAgent.push({ frame });
    },
    /** Returns the frames up to the first of this kind, or up to the end. */
    receivesUntil: async (last: string) => {
      const received: string[] = [];
      for await (const { frame } of toAgent) {
        received.push(textOf(frame));
        if (frame?.$case === last) break;
      }
      return received;
    },
  };
}

function textOf(frame: ServeResponse["frame"]): string {
  if (frame?.$case === "stdin") return `stdin ${frame.value}`;
  if (frame?.$case === "imageMissing") return `imageMissing ${frame.value.digests.join(" ")}`;
  return frame?.$case ?? "";
}
