import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";

export interface ImageUse {
  readonly image: string;
  /** The container's pull policy. Empty: the tag decides. */
  readonly pullPolicy: string;
}

/** Returns the images of all containers, each once for each pull policy. Pure. */
export function imagesOf({ container, sidecars, initContainers }: PodTemplate): ImageUse[] {
  const uses = new Map<string, ImageUse>();
  for (const it of [container, ...sidecars, ...initContainers]) {
    if (it === undefined) continue;
    const { image, imagePullPolicy: pullPolicy } = it;
    uses.set(`${image} ${pullPolicy}`, { image, pullPolicy });
  }
  return [...uses.values()];
}

/**
 * Reports whether the registry is queried even if the node has the image. The rule is Kubernetes': the pull policy decides;
 * without one, images with the tag `latest` or without a tag or digest are.
 */
export function isAskedForAlways({ image, pullPolicy }: ImageUse): boolean {
  if (pullPolicy !== "") return pullPolicy === "Always";
  if (image.includes("@")) return false;
  const name = image.slice(image.lastIndexOf("/") + 1);
  return !name.includes(":") || name.endsWith(":latest");
}
