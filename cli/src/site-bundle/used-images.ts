import type { Container, ForageResource } from "@forage/proto/forest/v1/forage";
import { digestIn, fullName, isMoving } from "../images/image-name.ts";
import type { Bundle } from "../manifest/bundles.ts";

/** An image to which manifests refer. */
export interface UsedImage {
  /** The full name. */
  readonly name: string;
  /** The name as written in the manifest. */
  readonly written: string;
  /** The namespaces whose pods use it, sorted. */
  readonly namespaces: readonly string[];
  /**
   * Whether a node always needs a registry to start a container from it, because its pull policy
   * queries the registry each time.
   */
  readonly needsRegistry: boolean;
}

/** Returns the images of all containers of the manifests, each once, sorted by name. */
export function usedImages(bundles: readonly Bundle[]): readonly UsedImage[] {
  const uses = bundles.flatMap(({ request: { namespace, resources } }) =>
    resources.flatMap(containersOf).map(({ image, imagePullPolicy }) => {
      const name = fullName(image);
      const asks = imagePullPolicy === "" ? isMoving(name) : imagePullPolicy === "Always";
      // nerdctl does not find an image that was pushed under a name with a digest.
      const needsRegistry = asks || digestIn(name) !== undefined;
      return { name, written: image, namespace, needsRegistry };
    }),
  );
  return [...Map.groupBy(uses, ({ name }) => name)]
    .map(([name, of]) => ({
      name,
      written: of[0]?.written ?? name,
      namespaces: [...new Set(of.map(({ namespace }) => namespace))].sort(),
      needsRegistry: of.some((use) => use.needsRegistry),
    }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function containersOf({ spec }: ForageResource): readonly Container[] {
  switch (spec?.$case) {
    case "containerService": {
      const { container, sidecars, initContainers } = spec.value;
      return [...(container === undefined ? [] : [container]), ...sidecars, ...initContainers];
    }
    case "job":
    case "cronJob":
      return spec.value.container === undefined ? [] : [spec.value.container];
    case "service":
    case "route":
    case undefined:
      return [];
    default:
      return spec satisfies never;
  }
}
