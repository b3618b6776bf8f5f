import type { Container, ForageResource, Volume } from "@forage/proto/forest/v1/forage";
import type { Column } from "../output/table.ts";

interface VolumeRow {
  readonly volume: Volume;
  readonly mounts: readonly string[];
}

export const volumeColumns: readonly Column<VolumeRow>[] = [
  { title: "VOLUME", value: ({ volume }) => volume.name },
  { title: "IS", value: ({ volume }) => sourceText(volume) },
  { title: "MOUNTED AT", value: ({ mounts }) => mounts.join(", ") },
];

/** A workload's volumes with where its containers have them; empty for what has none. */
export function volumeRows(resource: ForageResource | undefined): readonly VolumeRow[] {
  const spec = resource?.spec;
  if (spec?.$case !== "containerService") return [];
  const { container, sidecars, initContainers, volumes } = spec.value;
  const containers = [...initContainers, ...sidecars, ...(container === undefined ? [] : [container])];
  return volumes.map((volume) => ({
    volume,
    mounts: containers.flatMap((each) => mountsOf(each, volume.name)),
  }));
}

function mountsOf(container: Container, volume: string): string[] {
  return container.volumeMounts
    .filter(({ name }) => name === volume)
    .map(({ mountPath, readOnly }) => `${container.name}:${mountPath}${readOnly ? " (read only)" : ""}`);
}

function sourceText({ source }: Volume): string {
  switch (source?.$case) {
    case "emptyDir": {
      const { medium, sizeLimit } = source.value;
      return `empty directory${medium === "Memory" ? " in memory" : ""}${sizeLimit === "" ? "" : ` up to ${sizeLimit}`}`;
    }
    case "secret":
      return `secret/${source.value.secretName}`;
    case "configMap":
      return `config/${source.value.configMapName}`;
    case "pvc":
      return `claim/${source.value.claimName}`;
    case "hostPath":
      return `host path ${source.value.path}`;
    case "nfs":
      return `NFS ${source.value.server}:${source.value.path}`;
    case undefined:
      return "";
    default:
      return source satisfies never;
  }
}
