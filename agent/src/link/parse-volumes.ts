import { messageOf } from "@forage/common/message-of";
import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type {
  ConfigMapVolume,
  Container,
  EmptyDirVolume,
  SecretVolume,
  Volume as WireVolume,
} from "@forage/proto/forest/v1/forage";
import { wholeUnitsOf } from "@forage/scheduler";
import type { ObjectContent, PodObjects } from "../pods/pod.ts";
import { checkMounts, checkPod } from "../volumes/check-spec.ts";
import {
  type FilesSource,
  HOST_PATH_TYPES,
  type HostPathType,
  type PodVolumeSpec,
  type Volume,
  type VolumeMount,
  type VolumeSource,
} from "../volumes/volumes.ts";

/** Parses the pod's volumes. @throws Error, or VolumeError INVALID, for a volume that can never be created. */
export function parseVolumes(
  assignment: PodAssignment,
  objects: PodObjects,
  fsGroup: PodVolumeSpec["fsGroup"],
): PodVolumeSpec {
  const described = (assignment.template?.volumes ?? []).map(
    (volume): Volume => ({ name: volume.name, source: sourceOf(volume, assignment, objects) }),
  );
  const provided = (assignment.template?.providedVolumes ?? []).map(
    ({ name, provider, id }): Volume => ({ name, source: { type: "provided", provider, id } }),
  );
  const volumes = [...described, ...provided];
  const spec = { uid: assignment.uid, volumes, ...(fsGroup && { fsGroup }) };
  checkPod(spec);
  return spec;
}

/** Parses the container's mounts. @throws VolumeError INVALID. */
export function parseMounts({ name, volumeMounts }: Container, spec: PodVolumeSpec): readonly VolumeMount[] {
  const mounts = volumeMounts.map(({ name: volume, mountPath, subPath, readOnly }) => ({
    volume,
    mountPath,
    subPath,
    readOnly,
  }));
  try {
    checkMounts(mounts, new Set(spec.volumes.map((it) => it.name)));
  } catch (cause) {
    throw new Error(`container ${name}: ${messageOf(cause)}`, { cause });
  }
  return mounts;
}

function sourceOf(
  { name, source }: WireVolume,
  assignment: PodAssignment,
  objects: PodObjects,
): VolumeSource {
  switch (source?.$case) {
    case "emptyDir":
      return emptyDir(name, source.value);
    case "secret": {
      const title = `secret ${source.value.secretName}`;
      return files(true, title, source.value, present(objects.secrets, source.value.secretName));
    }
    case "configMap": {
      const title = `config map ${source.value.configMapName}`;
      return files(false, title, source.value, present(objects.configMaps, source.value.configMapName));
    }
    case "pvc":
      return claim(source.value.claimName, source.value.readOnly, assignment);
    case "hostPath":
      return {
        type: "hostPath",
        path: source.value.path,
        pathType: hostPathType(name, source.value.type),
        ...(assignment.hostPathLimits && { within: assignment.hostPathLimits.prefixes }),
      };
    case "nfs":
      return { type: "nfs", ...source.value };
    case undefined:
      throw new Error(`volume ${name}: it has no source`);
    default:
      return source satisfies never;
  }
}

function emptyDir(name: string, { medium, sizeLimit }: EmptyDirVolume): VolumeSource {
  if (medium !== "" && medium !== "Memory") {
    throw new Error(`volume ${name}: ${JSON.stringify(medium)} is not a medium: Memory, or nothing`);
  }
  const sizeLimitBytes = wholeUnitsOf(sizeLimit || "0");
  return {
    type: "emptyDir",
    medium: medium === "Memory" ? "memory" : "disk",
    ...(sizeLimitBytes > 0 && { sizeLimitBytes }),
  };
}

function files(
  secret: boolean,
  title: string,
  { items, defaultMode, optional }: SecretVolume | ConfigMapVolume,
  contents: FilesSource["contents"],
): FilesSource {
  return {
    type: "files",
    secret,
    title,
    ...(contents && { contents }),
    items: items.map(({ key, path, mode }) => ({ key, path, mode })),
    defaultMode,
    optional,
  };
}

/** Returns the current content of an object. Volumes follow changes, whatever version env is pinned to. */
function present(objects: readonly ObjectContent[], name: string): FilesSource["contents"] {
  return objects.find((it) => it.name === name && it.current)?.data;
}

function claim(name: string, readOnly: boolean, { namespace, claims }: PodAssignment): VolumeSource {
  const found = claims.find((it) => it.name === name);
  const capacityBytes = Number(found?.capacityBytes ?? 0);
  return {
    type: "claim",
    namespace,
    claim: name,
    ...(capacityBytes > 0 && { capacityBytes }),
    readOnly,
    ...(found === undefined && { undeclared: true }),
  };
}

function hostPathType(volume: string, type: string): HostPathType {
  const found = HOST_PATH_TYPES.find((it) => it === type);
  if (found !== undefined) return found;
  throw new Error(`volume ${volume}: host_path: ${JSON.stringify(type)} is not a type`);
}
