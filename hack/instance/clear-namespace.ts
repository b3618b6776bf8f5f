import { setTimeout } from "node:timers/promises";
import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import { assertContainerd } from "./host-containerd.ts";

// A snapshot can only be removed after those on top of it. None of our images has nearly as many layers.
const MAX_LAYERS = 130;

// A nerdctl that has outlived its agent may still add to the namespace, and containerd collects garbage late.
const LIMIT_MS = 15_000;
const RETRY_MS = 200;

/** Removes a namespace with its content from a containerd that others continue to use. */
export async function clearNamespace(address: string, namespace: string): Promise<void> {
  await assertContainerd(address).catch((cause) => {
    throw new SetupError(
      "NOT_READY",
      `containerd on ${address} has our containers but doesn't answer`,
      "start it, then run hack/down again",
      { cause },
    );
  });
  const deadline = performance.now() + LIMIT_MS;
  for (;;) {
    const trouble = await emptyAndRemove(address, namespace);
    if (trouble === undefined) return;
    if (performance.now() > deadline) {
      throw new SetupError(
        "COMMAND_FAILED",
        `containerd's namespace ${namespace} can't be removed: ${trouble}`,
        "end what still works in it, then run hack/down again",
      );
    }
    await setTimeout(RETRY_MS);
  }
}

/** Tries to remove the namespace. Returns the reason if that fails. */
async function emptyAndRemove(address: string, namespace: string): Promise<string | undefined> {
  const call = (...args: string[]) =>
    run("ctr", ["--address", address, "--namespace", namespace, ...args], { allowFailure: true });
  const ctr = async (...args: string[]): Promise<string[]> =>
    (await call(...args)).stdout
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  if (!(await ctr("namespaces", "list", "--quiet")).includes(namespace)) return undefined;
  for (const id of await ctr("tasks", "list", "--quiet")) await ctr("tasks", "delete", "--force", id);
  const containers = await ctr("containers", "list", "--quiet");
  if (containers.length > 0) await ctr("containers", "delete", ...containers);
  const images = await ctr("images", "list", "--quiet");
  if (images.length > 0) await ctr("images", "remove", ...images);
  for (const lease of await ctr("leases", "list", "--quiet")) await ctr("leases", "delete", "--sync", lease);
  for (let layer = 0; layer < MAX_LAYERS; layer++) {
    const keys = (await ctr("snapshots", "list")).slice(1).flatMap((line) => line.split(/\s+/)[0] ?? []);
    if (keys.length === 0) break;
    for (const key of keys) await ctr("snapshots", "remove", key);
  }
  const blobs = await ctr("content", "list", "--quiet");
  if (blobs.length > 0) await ctr("content", "remove", ...blobs);
  const { exitCode, stderr } = await call("namespaces", "remove", namespace);
  return exitCode === 0 ? undefined : stderr.trim();
}
