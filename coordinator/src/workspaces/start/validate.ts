import {
  AdmissionLevel,
  type EnvironmentVariable,
  type StartWorkspaceRequest,
  type StartWorkspaceSpec,
  WorkspaceFeatureFlag,
  type WorkspaceMetadata,
  WorkspaceType,
} from "@forage/proto/core";
import { Field } from "../../api/validate/field.ts";
import { Findings } from "../../api/validate/findings.ts";
import { imageProblem } from "../../api/validate/syntax/image.ts";
import {
  configKeyProblem,
  dnsLabelProblem,
  dnsSubdomainProblem,
  envNameProblem,
} from "../../api/validate/syntax/names.ts";
import { controlProblem, nulProblem } from "../../api/validate/syntax/text.ts";
import { CoordinatorError } from "../../errors.ts";
import { classOf, type WorkspaceSettings } from "../settings.ts";
import { checkSshKeys } from "./ssh-keys.ts";
import { checkInitializer, volumeSnapshotFields } from "./validate-initializer.ts";
import { checkPort, checkTimeout } from "./validate-parts.ts";

/** A pod's name is `ws-` plus the id, and has at most 63 characters. */
const MAX_ID_LENGTH = 60;
/**
 * Gitpod's ids have 36 characters. Owner and meta id are parts of keys, which have at most 1,024
 * bytes with escapes.
 */
const MAX_OWNER_LENGTH = 100;
/** Annotations are sent with each status. */
const MAX_ANNOTATIONS = 64;
const MAX_ANNOTATION_BYTES = 4 * 1024;
/**
 * Gitpod sends some dozens. The limit of their total size keeps the pod within one journal record
 * of the agent.
 */
const MAX_VARIABLES = 500;
const MAX_ENVIRONMENT_BYTES = 1024 * 1024 - 64 * 1024;
/** The kernel's limit for one variable. */
const MAX_VARIABLE_BYTES = 128 * 1024 - 1;
/** The most exposed ports of one workspace. */
export const MAX_PORTS = 100;
/** The length limit of paths, below the kernel's limit of 4,096 bytes. */
const MAX_PATH_LENGTH = 1_024;
const MAX_TEXT_LENGTH = 1_000;

/**
 * Throws INVALID with all violations of the request, or FAILED_PRECONDITION for features that are
 * not supported.
 */
export function validateStart(request: StartWorkspaceRequest, settings: WorkspaceSettings): void {
  const [findings, unsupported] = [new Findings(), new Findings()];
  const root = new Field(findings);
  root.at("id").check(dnsLabelProblem(request.id, MAX_ID_LENGTH));
  checkPrefix(request, root.at("service_prefix"));
  checkType(request.type, root.at("type"));
  checkMetadata(request.metadata, root.at("metadata"));
  if (request.spec === undefined) root.at("spec").invalid("must be set");
  else {
    checkSpec(request.spec, root.at("spec"), settings);
    checkFeatures(request.spec, root.at("spec"), unsupported);
  }
  findings.raise();
  raiseUnsupported(request, unsupported);
}

/**
 * Adds a finding for each requested volume snapshot. Gitpod's managers answer the same in clusters
 * without volume snapshots.
 */
function raiseUnsupported({ spec }: StartWorkspaceRequest, unsupported: Findings): void {
  for (const field of volumeSnapshotFields(spec?.initializer, "spec.initializer"))
    unsupported.invalid(
      field,
      "volume snapshots are not supported: content is backed up to the content store",
    );
  const violations = unsupported.invalidFields;
  if (violations.length === 0) return;
  const named = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  throw new CoordinatorError("FAILED_PRECONDITION", `this manager does not support it: ${named}`, {
    violations,
  });
}

/** Checks the prefix, which becomes part of a host name. */
function checkPrefix({ servicePrefix, type }: StartWorkspaceRequest, field: Field): void {
  if (servicePrefix !== "") field.check(dnsLabelProblem(servicePrefix));
  else if (type === WorkspaceType.REGULAR) field.invalid("must not be empty for a regular workspace");
}

function checkType(type: WorkspaceType, field: Field): void {
  const { REGULAR, PREBUILD, PROBE, IMAGEBUILD } = WorkspaceType;
  const known: readonly number[] = [REGULAR, PREBUILD, PROBE, IMAGEBUILD];
  if (!known.includes(type)) field.invalid("must be REGULAR, PREBUILD, PROBE or IMAGEBUILD");
}

function checkMetadata(metadata: WorkspaceMetadata | undefined, field: Field): void {
  if (metadata === undefined) {
    field.invalid("must be set");
    return;
  }
  checkName(metadata.owner, field.at("owner"));
  checkName(metadata.metaId, field.at("meta_id"));
  const entries = Object.entries(metadata.annotations);
  if (entries.length > MAX_ANNOTATIONS)
    field.at("annotations").invalid(`must have at most ${MAX_ANNOTATIONS} entries`);
  for (const [key, value] of entries.slice(0, MAX_ANNOTATIONS))
    if (Buffer.byteLength(key) + Buffer.byteLength(value) > MAX_ANNOTATION_BYTES)
      field
        .at("annotations")
        .key(key)
        .invalid(`must have at most ${MAX_ANNOTATION_BYTES} bytes with its key`);
  for (const name of ["team", "project"] as const)
    if ((metadata[name] ?? "").length > MAX_TEXT_LENGTH)
      field.at(name).invalid(`must have at most ${MAX_TEXT_LENGTH} characters`);
}

function checkName(text: string, field: Field): void {
  if (text === "") field.invalid("must not be empty");
  else if (text.length > MAX_OWNER_LENGTH) field.invalid(`must have at most ${MAX_OWNER_LENGTH} characters`);
  else if (!/^[\x21-\x7e]+$/.test(text)) field.invalid("must be printable ASCII without spaces");
}

function checkSpec(spec: StartWorkspaceSpec, field: Field, settings: WorkspaceSettings): void {
  field.at("workspace_image").check(imageProblem(spec.workspaceImage));
  checkLocation(spec.workspaceLocation, field.at("workspace_location"));
  if (spec.initializer?.spec === undefined)
    field.at("initializer").invalid("must name how the content is made");
  else checkInitializer(spec.initializer, field.at("initializer"));
  checkTimeout(spec.timeout, field.at("timeout"));
  if (classOf(settings, spec.class) === undefined)
    field
      .at("class")
      .invalid(`is unknown; the classes are ${settings.classes.map(({ id }) => id).join(", ")}`);
  const admissions: readonly number[] = [AdmissionLevel.ADMIT_OWNER_ONLY, AdmissionLevel.ADMIT_EVERYONE];
  if (!admissions.includes(spec.admission))
    field.at("admission").invalid("must be ADMIT_OWNER_ONLY or ADMIT_EVERYONE");
  checkPorts(spec, field.at("ports"));
  checkEnvironment(spec.envvars, field.at("envvars"));
  checkSshKeys(spec.sshPublicKeys, field.at("ssh_public_keys"), { mayBeEmpty: true });
  checkGit(spec, field.at("git"));
}

function checkLocation(location: string, field: Field): void {
  if (location === "") field.invalid("must not be empty");
  else if (location.length > MAX_PATH_LENGTH)
    field.invalid(`must have at most ${MAX_PATH_LENGTH} characters`);
  else if (location.split("/").includes("..")) field.invalid('must not contain ".."');
  else field.check(controlProblem(location));
}

function checkPorts({ ports }: StartWorkspaceSpec, field: Field): void {
  if (ports.length > MAX_PORTS) field.invalid(`must have at most ${MAX_PORTS} entries`);
  const seen = new Set<number>();
  for (const [index, port] of ports.slice(0, MAX_PORTS).entries()) {
    checkPort(port, field.item(index));
    if (seen.has(port.port)) field.item(index).at("port").invalid(`is ${port.port} twice`);
    seen.add(port.port);
  }
}

function checkEnvironment(variables: readonly EnvironmentVariable[], field: Field): void {
  if (variables.length > MAX_VARIABLES) field.invalid(`must have at most ${MAX_VARIABLES} entries`);
  let bytes = 0;
  for (const [index, { name, value, secret }] of variables.slice(0, MAX_VARIABLES).entries()) {
    const at = field.item(index);
    bytes += Buffer.byteLength(value);
    at.at("name").check(envNameProblem(name));
    at.at("value").check(nulProblem(value));
    if (Buffer.byteLength(value) > MAX_VARIABLE_BYTES)
      at.at("value").invalid(`must have at most ${MAX_VARIABLE_BYTES} bytes`);
    if (secret === undefined || value !== "") continue;
    at.at("secret").at("secret_name").check(dnsSubdomainProblem(secret.secretName));
    at.at("secret").at("key").check(configKeyProblem(secret.key));
  }
  if (bytes > MAX_ENVIRONMENT_BYTES)
    field.invalid(`must have at most ${MAX_ENVIRONMENT_BYTES} bytes of values`);
}

function checkFeatures(spec: StartWorkspaceSpec, field: Field, unsupported: Findings): void {
  for (const [index, flag] of spec.featureFlags.entries()) {
    const at = field.at("feature_flags").item(index);
    if (flag === WorkspaceFeatureFlag.PERSISTENT_VOLUME_CLAIM)
      unsupported.invalid(at.path, "PERSISTENT_VOLUME_CLAIM is not supported: content lies on the node");
    else if (flag === WorkspaceFeatureFlag.FULL_WORKSPACE_BACKUP)
      unsupported.invalid(at.path, "FULL_WORKSPACE_BACKUP is not supported: content is /workspace");
    else if (flag !== WorkspaceFeatureFlag.NOOP && flag !== WorkspaceFeatureFlag.FIXED_RESOURCES)
      at.invalid("is unknown");
  }
  const { volumeSnapshotName = "", volumeSnapshotHandle = "" } = spec.volumeSnapshot ?? {};
  if (volumeSnapshotName !== "" || volumeSnapshotHandle !== "")
    unsupported.invalid(field.at("volume_snapshot").path, "is not supported: use a snapshot initializer");
}

function checkGit({ git }: StartWorkspaceSpec, field: Field): void {
  for (const name of ["username", "email"] as const) {
    const text = git?.[name] ?? "";
    field.at(name).check(controlProblem(text));
    if (text.length > MAX_TEXT_LENGTH)
      field.at(name).invalid(`must have at most ${MAX_TEXT_LENGTH} characters`);
  }
}
