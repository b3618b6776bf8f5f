import {
  AdmissionLevel,
  type ControlAdmissionRequest,
  type ControlAdmissionResponse,
  type ControlPortRequest,
  type ControlPortResponse,
  PortSpec,
  type SetTimeoutRequest,
  type SetTimeoutResponse,
  type UpdateSSHKeyRequest,
  type UpdateSSHKeyResponse,
  WorkspaceSpec,
} from "@forage/proto/core";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { Field } from "../../api/validate/field.ts";
import { Findings } from "../../api/validate/findings.ts";
import { CoordinatorError } from "../../errors.ts";
import { type WorkspaceSettings, workspaceUrl } from "../settings.ts";
import { checkSshKeys } from "../start/ssh-keys.ts";
import { MAX_PORTS } from "../start/validate.ts";
import { checkPort, checkTimeout } from "../start/validate-parts.ts";
import type { WorkspaceWriter } from "../writer.ts";

/**
 * Sets the time-out. A custom time-out also replaces the shorter one of closed workspaces. Throws
 * INVALID, NOT_FOUND, FAILED_PRECONDITION.
 */
export async function setTimeout(
  { id, duration }: SetTimeoutRequest,
  writer: WorkspaceWriter,
): Promise<SetTimeoutResponse> {
  checked((root) => {
    if (duration === "") root.at("duration").invalid("must be a Go duration such as 1h30m");
    else checkTimeout(duration, root.at("duration"));
  });
  await writer.update(id, (record) => {
    assertNotStopping(record);
    const spec = { ...specOf(record), timeout: duration };
    return { ...record, spec, customTimeout: duration, closedTimeoutOff: true };
  });
  return {};
}

/** Adds, replaces or removes an exposed port. Throws INVALID, NOT_FOUND, FAILED_PRECONDITION. */
export async function controlPort(
  { id, expose, spec }: ControlPortRequest,
  { writer, settings }: { readonly writer: WorkspaceWriter; readonly settings: WorkspaceSettings },
): Promise<ControlPortResponse> {
  checked((root) =>
    spec === undefined ? root.at("spec").invalid("must be set") : checkPort(spec, root.at("spec")),
  );
  const requested = PortSpec.fromPartial(spec ?? {});
  await writer.update(id, (record) => {
    assertNotStopping(record);
    const before = specOf(record).exposedPorts;
    const known = before.find(({ port }) => port === requested.port);
    if (!expose)
      return known === undefined
        ? record
        : withPorts(
            record,
            before.filter((it) => it !== known),
          );
    const url = workspaceUrl(settings, { id, prefix: record.servicePrefix, port: requested.port });
    const port = { ...requested, url };
    if (known === undefined && before.length >= MAX_PORTS)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `workspace ${id} has ${MAX_PORTS} exposed ports: remove some first`,
      );
    if (known !== undefined && known.visibility === port.visibility && known.url === url) return record;
    return withPorts(
      record,
      known === undefined ? [...before, port] : before.map((it) => (it === known ? port : it)),
    );
  });
  return {};
}

/**
 * Sets whether other users may reach the workspace. Throws INVALID, NOT_FOUND, FAILED_PRECONDITION.
 */
export async function controlAdmission(
  { id, level }: ControlAdmissionRequest,
  writer: WorkspaceWriter,
): Promise<ControlAdmissionResponse> {
  const levels: readonly number[] = [AdmissionLevel.ADMIT_OWNER_ONLY, AdmissionLevel.ADMIT_EVERYONE];
  checked((root) => {
    if (!levels.includes(level)) root.at("level").invalid("must be ADMIT_OWNER_ONLY or ADMIT_EVERYONE");
  });
  await writer.update(id, (record) => {
    assertNotStopping(record);
    return record.admission === level ? record : { ...record, admission: level };
  });
  return {};
}

/** Replaces the SSH keys that may log in. Throws INVALID, NOT_FOUND. */
export async function updateSshKeys(
  { id, keys }: UpdateSSHKeyRequest,
  writer: WorkspaceWriter,
): Promise<UpdateSSHKeyResponse> {
  checked((root) => {
    if (id === "") root.at("id").invalid("must not be empty");
    checkSshKeys(keys, root.at("keys"), { mayBeEmpty: false });
  });
  await writer.update(id, (record) => {
    const same =
      keys.length === record.sshPublicKeys.length &&
      keys.every((key, index) => key === record.sshPublicKeys[index]);
    return same ? record : { ...record, sshPublicKeys: [...keys] };
  });
  return {};
}

function checked(check: (root: Field) => void): void {
  const findings = new Findings();
  check(new Field(findings));
  findings.raise();
}

function assertNotStopping({ id, stop }: InstanceRecord): void {
  if (stop === undefined) return;
  throw new CoordinatorError("FAILED_PRECONDITION", `workspace ${id} is being stopped, or it has stopped`);
}

function specOf({ spec }: InstanceRecord): WorkspaceSpec {
  return spec ?? WorkspaceSpec.fromPartial({});
}

function withPorts(record: InstanceRecord, exposedPorts: readonly PortSpec[]): InstanceRecord {
  return { ...record, spec: { ...specOf(record), exposedPorts: [...exposedPorts] } };
}
