import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import { assertContainerd } from "./host-containerd.ts";

// A snapshot can only go once those on top of it are gone; no image of ours is nearly this deep.
const MAX_LAYERS = 130;

/** Removes a namespace with all that is in it from a containerd that goes on for others. */
export async function clearNamespace(address: string, namespace: string): Promise<void> {
  await assertContainerd(address).catch((cause) => {
    throw new SetupError(
      "NOT_READY",
      `containerd on ${address} has our containers but doesn't answer`,
      "start it, then run hack/down again",
      { cause },
    );
  });
  const ctr = async (...args: string[]): Promise<string[]> => {
    const { stdout } = await run("ctr", ["--address", address, "--namespace", namespace, ...args], {
      allowFailure: true,
    });
    return stdout
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  };
  const namespaces = (await ctr("namespaces", "list", "--quiet")) ?? [];
  if (!namespaces.includes(namespace)) return;
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
  await run("ctr", ["--address", address, "namespaces", "remove", namespace]);
}
