import { createHash } from "node:crypto";
import type { ImageDescription } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../../errors.ts";
import { outputOf, type PodSession, type SessionOutput } from "./sessions.ts";

/**
 * Passes an image from the node that reads it to the node that stores it, which is opened once the image is described. Layers pass as fast
 * as they are taken. Throws the first failure of either node; the other one only lost its partner.
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

/** Throws INVALID if the image's name ends with a digest, and a node describes something else. The target checks the whole chain. */
export function assertNamedDigest(
  image: string,
  { manifest, indexes: [outermost = manifest] }: ImageDescription,
  node: string,
): void {
  const named = namedDigest(image);
  const digest = `sha256:${createHash("sha256").update(outermost).digest("hex")}`;
  if (named === undefined || named === digest) return;
  throw new CoordinatorError("INVALID", `node ${node} has ${digest} for ${image}`);
}

/** Returns the digest with which an image's name ends. */
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

/** Ends the target's input with the mark that it is complete only after the source has ended well. */
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

/** Ends the source after a failure of the target, because nothing takes its layers then. */
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
