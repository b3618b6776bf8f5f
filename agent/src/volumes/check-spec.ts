import {
  type FilesSource,
  HOST_PATH_TYPES,
  type PodVolumeSpec,
  type Volume,
  VolumeError,
  type VolumeMount,
} from "./volumes.ts";

// These become directory names and parts of arguments that support no quoting.
const POD_UID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
const VOLUME_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const OBJECT_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
const FILE_KEY = /^[A-Za-z0-9._-]{1,253}$/;
const PROVIDER = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
const PROVIDED_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
// A name or address. It begins an argument, so it must not begin with a dash.
const SERVER = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$|^\[[0-9a-fA-F:.]{2,45}\]$/;

// The kernel's limits.
const PATH_BYTES_MAX = 4095;
const NAME_BYTES_MAX = 255;
const MODE_MAX = 0o777;

// etcd, and therefore Kubernetes, allows 1 MiB per object; more is not a plausible configuration.
const CONTENT_BYTES_MAX = 1024 * 1024;
const FILES_MAX = 1_000;
const VOLUMES_MAX = 100;

/** Checks a pod's volumes. @throws VolumeError INVALID for a specification that can never be met. */
export function checkPod({ uid, volumes, fsGroup }: PodVolumeSpec): void {
  checkPodUid(uid);
  if (volumes.length > VOLUMES_MAX)
    throw invalid(`${volumes.length} volumes, at most ${VOLUMES_MAX} are allowed`);
  const names = new Set(volumes.map(({ name }) => name));
  if (names.size !== volumes.length) throw invalid("two volumes of the pod have one name");
  for (const volume of volumes) checkVolume(volume);
  if (fsGroup !== undefined && !isId(fsGroup.gid)) throw invalid(`fs_group ${fsGroup.gid} is not a group id`);
}

export function checkPodUid(uid: string): void {
  if (!POD_UID.test(uid)) throw invalid(`${JSON.stringify(uid)} can't be a pod's uid`);
}

export function checkClaimName(namespace: string, name: string): void {
  for (const it of [namespace, name]) {
    if (!OBJECT_NAME.test(it)) throw invalid(`${JSON.stringify(it)} can't be a claim's namespace or name`);
  }
}

/** Returns the error for a claim that a pod names but that doesn't exist. */
export function undeclaredClaim(namespace: string, claim: string): VolumeError {
  return new VolumeError("SOURCE_MISSING", `claim ${namespace}/${claim} doesn't exist`);
}

function checkVolume({ name, source }: Volume): void {
  if (!VOLUME_NAME.test(name)) throw invalid(`${JSON.stringify(name)} can't be a volume's name`);
  const at = `volume ${name}`;
  switch (source.type) {
    case "emptyDir":
      return;
    case "files":
      checkFiles(at, source);
      return;
    case "claim":
      checkClaimName(source.namespace, source.claim);
      return;
    case "hostPath":
      checkAbsolute(`${at}: host_path`, source.path);
      if (HOST_PATH_TYPES.includes(source.pathType)) return;
      throw invalid(`${at}: host_path: ${JSON.stringify(source.pathType)} is not a type`);
    case "nfs":
      checkAbsolute(`${at}: nfs`, source.path);
      if (SERVER.test(source.server)) return;
      throw invalid(`${at}: nfs: ${JSON.stringify(source.server)} can't be a server`);
    case "provided":
      if (PROVIDER.test(source.provider) && PROVIDED_ID.test(source.id)) return;
      throw invalid(
        `${at}: provider ${JSON.stringify(source.provider)} with id ${JSON.stringify(source.id)} is not possible`,
      );
    default:
      source satisfies never;
  }
}

function checkFiles(at: string, { contents, items, defaultMode }: FilesSource): void {
  for (const mode of [defaultMode, ...items.map((it) => it.mode)]) {
    if (!Number.isInteger(mode) || mode < 0 || mode > MODE_MAX)
      throw invalid(`${at}: ${mode} is not a file mode`);
  }
  for (const { path } of items) {
    checkRelative(`${at}: path`, path);
    // These names are the mechanism's own.
    if (path.startsWith("..")) throw invalid(`${at}: path ${JSON.stringify(path)} must not begin with ..`);
  }
  let bytes = 0;
  for (const [key, content] of contents ?? []) {
    if (!FILE_KEY.test(key) || key === "." || key.startsWith("..")) {
      throw invalid(`${at}: ${JSON.stringify(key)} can't be a key`);
    }
    bytes += content.byteLength;
  }
  if (bytes > CONTENT_BYTES_MAX)
    throw invalid(`${at}: ${bytes} bytes, at most ${CONTENT_BYTES_MAX} are allowed`);
  if (Math.max(items.length, contents?.size ?? 0) > FILES_MAX)
    throw invalid(`${at}: more than ${FILES_MAX} files`);
}

/** Checks a container's mounts against the pod's volumes. @throws VolumeError INVALID. */
export function checkMounts(mounts: readonly VolumeMount[], volumes: ReadonlySet<string>): void {
  const targets = new Set<string>();
  for (const { volume, mountPath, subPath } of mounts) {
    if (!volumes.has(volume))
      throw invalid(`mount ${mountPath}: the pod has no volume ${JSON.stringify(volume)}`);
    checkAbsolute("mount_path", mountPath);
    const target = mountPath.replace(/\/+$/, "");
    if (target === "") throw invalid("mount_path: nothing can be mounted over the root");
    if (hasOptionSeparator(target))
      throw invalid(`mount_path ${JSON.stringify(mountPath)} has a comma, colon, quote or line break`);
    if (targets.has(target)) throw invalid(`mount_path ${mountPath} is used twice`);
    targets.add(target);
    if (subPath !== "") checkRelative(`mount ${mountPath}: sub_path`, subPath);
  }
}

/** Reports whether a path has characters at which nerdctl splits its options; it supports no quoting. */
export function hasOptionSeparator(path: string): boolean {
  return /[,:"\n]/.test(path);
}

function checkAbsolute(what: string, path: string): void {
  if (!path.startsWith("/")) throw invalid(`${what}: ${JSON.stringify(path)} must be absolute`);
  checkParts(what, path, path.split("/"));
}

function checkRelative(what: string, path: string): void {
  if (path === "" || path.startsWith("/")) throw invalid(`${what}: ${JSON.stringify(path)} must be relative`);
  checkParts(what, path, path.split("/"));
}

function checkParts(what: string, path: string, parts: readonly string[]): void {
  if (parts.includes("..")) throw invalid(`${what}: ${JSON.stringify(path)} must not contain ..`);
  if (path.includes("\0")) throw invalid(`${what}: a NUL byte`);
  const isLong =
    Buffer.byteLength(path) > PATH_BYTES_MAX || parts.some((it) => Buffer.byteLength(it) > NAME_BYTES_MAX);
  if (isLong) throw invalid(`${what}: too long`);
}

function isId(id: number): boolean {
  return Number.isInteger(id) && id >= 0 && id < 2 ** 32 - 1;
}

function invalid(message: string): VolumeError {
  return new VolumeError("INVALID", message);
}
