import { createHash } from "node:crypto";
import type { ImageDescription } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../../errors.ts";
import { outputOf, type PodSession, type SessionOutput } from "./sessions.ts";

/**
 * Sends an image from a source node to a target node, whose session is opened once the source has described the image.
 * Layers are read as fast as the target accepts them. Throws the first error of either node, because the other node only
 * reports that its peer is gone.
 */
export async function relayImage(
  source: PodSession,
  openTarget: (description: ImageDescription) => PodSession,
  onBytes: (bytes: number) => void = () => {},
): Promise<void> {
  const fromSource = outputOf(source);
  try {
    const first = await fromSource.next();
    if (first.done || first.value.$case !== "imageDescription") throw endedEarly();
    const target = openTarget(first.value.value);
    try {
      await relayLayers(source, fromSource, target, onBytes);
    } finally {
      target.toAgent.close();
      target.fromAgent.close();
    }
  } finally {
    source.fromAgent.close();
    await fromSource.return(undefined);
  }
}

/**
 * Checks that a node's description has the digest in the image's name, if it has one. The target verifies the content.
 * @throws CoordinatorError INVALID.
 */
export function assertNamedDigest(
  image: string,
  { manifest, indexes: [outermost = manifest] }: ImageDescription,
  node: string,
): void {
  const named = namedDigest(image);
  const digest = `sha256:${createHash("sha256").update(outermost).digest("hex")}`;
  if (named === undefined || named === digest) return;
  throw new CoordinatorError("INVALID", `node ${node} has the digest ${digest} for ${image}`);
}

/** Returns the digest at the end of an image's name. Undefined: it has none. */
export function namedDigest(image: string): string | undefined {
  return /@(sha256:[0-9a-f]{64})$/.exec(image)?.[1];
}

async function relayLayers(
  source: PodSession,
  fromSource: AsyncGenerator<SessionOutput>,
  target: PodSession,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const fromTarget = outputOf(target);
  const answer = await fromTarget.next();
  if (answer.done || answer.value.$case !== "imageMissing") throw endedEarly();
  await source.toAgent.push({ frame: { $case: "imageMissing", value: answer.value.value } });
  await Promise.all([passLayers(fromSource, target, onBytes), readToEnd(fromTarget, source)]);
}

/** Sends the layers. Marks the end of the target's input as complete only if the source has ended without an error. */
async function passLayers(
  fromSource: AsyncGenerator<SessionOutput>,
  target: PodSession,
  onBytes: (bytes: number) => void,
): Promise<void> {
  try {
    for await (const frame of fromSource) {
      if (frame.$case === "end") {
        await target.toAgent.push({ frame: { $case: "stdinClosed", value: true } });
        return;
      }
      if (frame.$case !== "stdout") continue;
      if (!(await target.toAgent.push({ frame: { $case: "stdin", value: frame.value } }))) return;
      onBytes(frame.value.length);
    }
    throw endedEarly();
  } catch (error) {
    target.toAgent.close();
    throw error;
  }
}

/** Reads the target's output to its end. Ends the source if the target fails, because its layers are not needed then. */
async function readToEnd(fromTarget: AsyncGenerator<SessionOutput>, source: PodSession): Promise<void> {
  try {
    for await (const frame of fromTarget) if (frame.$case === "end") return;
    throw endedEarly();
  } catch (error) {
    source.toAgent.close();
    throw error;
  }
}

function endedEarly(): CoordinatorError {
  return new CoordinatorError("UNAVAILABLE", "a node ended the transfer of the image early: try again");
}
