import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
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

/** The part of a pod's template, or of a workload's specification, that concerns volumes. */
export type PodVolumes = Pick<PodTemplate, "container" | "sidecars" | "initContainers" | "volumes">;

/** Returns a workload's volumes with their mount paths; empty for other resources. */
export function volumeRows(resource: ForageResource | undefined): readonly VolumeRow[] {
  const spec = resource?.spec;
  return spec?.$case === "containerService" ? podVolumeRows(spec.value) : [];
}

/** Returns a pod's volumes with their mount paths. */
export function podVolumeRows({
  container,
  sidecars,
  initContainers,
  volumes,
}: PodVolumes): readonly VolumeRow[] {
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
