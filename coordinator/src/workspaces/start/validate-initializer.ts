import {
  CloneTargetMode,
  GitAuthMethod,
  type GitInitializer,
  type WorkspaceInitializer,
} from "@forage/proto/content-service-api/initializer";
import type { Field } from "../../api/validate/field.ts";
import { controlProblem } from "../../api/validate/syntax/text.ts";

/** The deepest nesting of composite initializers. Gitpod's nest once. */
const MAX_DEPTH = 4;
const MAX_PARTS = 32;
const MAX_FILES = 100;
const MAX_TEXT_LENGTH = 8_192;
const MAX_CUSTOM_CONFIG = 100;

/** Adds a finding for each fault of an initializer that would make it fail on every node. */
export function checkInitializer({ spec }: WorkspaceInitializer, field: Field, depth = 1): void {
  switch (spec?.$case) {
    case undefined:
      field.invalid("must name how the content is made");
      return;
    case "empty":
      return;
    case "git":
      checkGit(spec.value, field.at("git"));
      return;
    case "snapshot":
      checkSnapshot(spec.value, field.at("snapshot"));
      return;
    case "prebuild": {
      const at = field.at("prebuild");
      if (spec.value.prebuild === undefined) at.at("prebuild").invalid("must be set");
      else checkSnapshot(spec.value.prebuild, at.at("prebuild"));
      checkCount(spec.value.git.length, at.at("git"), MAX_PARTS);
      for (const [index, git] of spec.value.git.slice(0, MAX_PARTS).entries())
        checkGit(git, at.at("git").item(index));
      return;
    }
    case "composite": {
      const at = field.at("composite").at("initializer");
      if (depth >= MAX_DEPTH) at.invalid(`must not nest more than ${MAX_DEPTH} deep`);
      checkCount(spec.value.initializer.length, at, MAX_PARTS);
      if (depth < MAX_DEPTH)
        for (const [index, part] of spec.value.initializer.slice(0, MAX_PARTS).entries())
          checkInitializer(part, at.item(index), depth + 1);
      return;
    }
    case "download":
      checkDownload(spec.value, field.at("download"));
      return;
    case "backup": {
      const at = field.at("backup");
      checkPath(spec.value.checkoutLocation, at.at("checkout_location"));
      return;
    }
    default:
      spec satisfies never;
  }
}

/** Returns the paths of fields that request volume snapshots. */
export function volumeSnapshotFields(
  initializer: WorkspaceInitializer | undefined,
  path: string,
): readonly string[] {
  const spec = initializer?.spec;
  switch (spec?.$case) {
    case "snapshot":
      return spec.value.fromVolumeSnapshot ? [`${path}.snapshot.from_volume_snapshot`] : [];
    case "backup":
      return spec.value.fromVolumeSnapshot ? [`${path}.backup.from_volume_snapshot`] : [];
    case "prebuild":
      return spec.value.prebuild?.fromVolumeSnapshot === true
        ? [`${path}.prebuild.prebuild.from_volume_snapshot`]
        : [];
    case "composite":
      return spec.value.initializer.flatMap((part, index) =>
        volumeSnapshotFields(part, `${path}.composite.initializer[${index}]`),
      );
    default:
      return [];
  }
}

function checkGit(git: GitInitializer, field: Field): void {
  checkRemote(git.remoteUri, field.at("remote_uri"));
  if (git.upstreamRemoteUri !== "") checkRemote(git.upstreamRemoteUri, field.at("upstream_Remote_uri"));
  checkText(git.cloneTaget, field.at("clone_taget"));
  checkPath(git.checkoutLocation, field.at("checkout_location"));
  const modes: readonly number[] = [
    CloneTargetMode.REMOTE_HEAD,
    CloneTargetMode.REMOTE_COMMIT,
    CloneTargetMode.REMOTE_BRANCH,
    CloneTargetMode.LOCAL_BRANCH,
  ];
  if (!modes.includes(git.targetMode)) field.at("target_mode").invalid("is unknown");
  else if (git.targetMode !== CloneTargetMode.REMOTE_HEAD && git.cloneTaget === "")
    field.at("clone_taget").invalid("must name the commit or branch of the target mode");
  const config = field.at("config");
  if (git.config === undefined) {
    config.invalid("must be set");
    return;
  }
  const methods: readonly number[] = [
    GitAuthMethod.NO_AUTH,
    GitAuthMethod.BASIC_AUTH,
    GitAuthMethod.BASIC_AUTH_OTS,
  ];
  if (!methods.includes(git.config.authentication)) config.at("authentication").invalid("is unknown");
  if (git.config.authentication === GitAuthMethod.BASIC_AUTH_OTS && git.config.authOts === "")
    config.at("auth_ots").invalid("must be the URL of the one-time secret");
  checkCount(Object.keys(git.config.customConfig).length, config.at("custom_config"), MAX_CUSTOM_CONFIG);
}

/**
 * Checks a clone URL. Nodes clone by http and https only:
 * `docs/decisions/git-remotes-over-http.md`. The message does not repeat the URL, which may contain
 * a password.
 */
function checkRemote(uri: string, field: Field): void {
  checkText(uri, field);
  if (!/^https?:\/\//i.test(uri) || !URL.canParse(uri))
    field.invalid("must be an http or https URL: ssh://, git:// and other protocols are not cloned");
}

function checkSnapshot({ snapshot }: { readonly snapshot: string }, field: Field): void {
  if (snapshot === "") field.at("snapshot").invalid("must not be empty");
  checkText(snapshot, field.at("snapshot"));
}

function checkDownload(
  {
    files,
    targetLocation,
  }: {
    readonly files: readonly { url: string; filePath: string; digest: string }[];
    readonly targetLocation: string;
  },
  field: Field,
): void {
  checkPath(targetLocation, field.at("target_location"));
  checkCount(files.length, field.at("files"), MAX_FILES);
  for (const [index, { url, filePath, digest }] of files.slice(0, MAX_FILES).entries()) {
    const at = field.at("files").item(index);
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) at.at("url").invalid("must be an http or https URL");
    if (filePath === "") at.at("file_path").invalid("must not be empty");
    checkPath(filePath, at.at("file_path"));
    if (!/^sha256:[0-9a-f]{64}$/.test(digest))
      at.at("digest").invalid("must be sha256: and 64 hexadecimal digits");
  }
}

function checkPath(path: string, field: Field): void {
  checkText(path, field);
  if (path.split("/").includes("..")) field.invalid('must not contain ".."');
}

function checkText(text: string, field: Field): void {
  if (text.length > MAX_TEXT_LENGTH) field.invalid(`must have at most ${MAX_TEXT_LENGTH} characters`);
  field.check(controlProblem(text));
}

function checkCount(count: number, field: Field, max: number): void {
  if (count > max) field.invalid(`must have at most ${max} entries`);
}
