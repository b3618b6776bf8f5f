import { StartTaskRequestAdditions, TaskConfigAdditions } from "@forage/proto/forage/nomad/v1/additions";
import {
  type CapabilitiesResponse,
  DriverCapabilities,
  DriverService,
  StartTaskRequest,
  StartTaskResponse,
  TaskConfig,
  TaskHandle,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { handleUnaryCall, MethodDefinition } from "@grpc/grpc-js";

/**
 * Additions of newer versions of Nomad to the Driver service that this driver uses. The contract is frozen, so these
 * few bytes are encoded by hand.
 */
export interface NewerCapabilities extends DriverCapabilities {
  /** Whether Nomad collects no logs of tasks. Since Nomad 1.6. */
  readonly disableLogCollection: boolean;
}

/** A task with the fields that newer versions of Nomad send. */
export interface NewerTaskConfig extends TaskConfig {
  readonly additions?: TaskConfigAdditions | undefined;
}

/** `disable_log_collection: true`, field 8 of DriverCapabilities. */
const LOG_COLLECTION_DISABLED = Buffer.of(0x40, 0x01);
/** `capabilities` of CapabilitiesResponse. */
const CAPABILITIES_FIELD = 1;
/** `config` of TaskHandle. */
const HANDLE_CONFIG_FIELD = 2;
/** `handle` of StartTaskResponse. */
const RESPONSE_HANDLE_FIELD = 3;
/** The wire type of messages. */
const LENGTH_DELIMITED = 2;
const NOTHING = Buffer.alloc(0);

type Empty = Readonly<Record<string, never>>;

function emptyCall(name: string): MethodDefinition<Empty, Empty> {
  return {
    path: `/hashicorp.nomad.plugins.drivers.proto.Driver/${name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: () => NOTHING,
    requestDeserialize: () => ({}),
    responseSerialize: () => NOTHING,
    responseDeserialize: () => ({}),
  };
}

/** The Driver service with the additions. */
export const NEWER_DRIVER_SERVICE = {
  ...DriverService,
  capabilities: {
    ...DriverService.capabilities,
    responseSerialize: serializeCapabilities,
  },
  startTask: {
    ...DriverService.startTask,
    requestDeserialize: deserializeStart,
    responseSerialize: serializeStarted,
  },
  /** Called before the driver is used. Since Nomad 2.0. */
  init: emptyCall("Init"),
  /**
   * Called when the client stops. Since Nomad 2.0. Does nothing, because tasks keep running and the controller ends the
   * plugin.
   */
  shutdown: emptyCall("Shutdown"),
} as const;

const answerNothing: handleUnaryCall<Empty, Empty> = (_call, callback) => callback(null, {});

/** Handlers of the calls that the contract does not contain. */
export const NEWER_CALLS = { init: answerNothing, shutdown: answerNothing } as const;

function serializeCapabilities({ capabilities }: CapabilitiesResponse): Buffer {
  if (capabilities === undefined) return NOTHING;
  const isDisabled = "disableLogCollection" in capabilities && capabilities.disableLogCollection === true;
  const inner = Buffer.concat([
    DriverCapabilities.encode(capabilities).finish(),
    isDisabled ? LOG_COLLECTION_DISABLED : NOTHING,
  ]);
  return embedded(CAPABILITIES_FIELD, inner);
}

function deserializeStart(bytes: Buffer): StartTaskRequest {
  const { task } = StartTaskRequest.decode(bytes);
  if (task === undefined) return { task };
  const newer: NewerTaskConfig = { ...task, additions: StartTaskRequestAdditions.decode(bytes).task };
  return { task: newer };
}

/** Serializes the response. The handle contains the whole task as Nomad sent it. */
function serializeStarted(response: StartTaskResponse): Buffer {
  const { handle } = response;
  const config: NewerTaskConfig | undefined = handle?.config;
  if (handle === undefined || config?.additions === undefined)
    return Buffer.from(StartTaskResponse.encode(response).finish());
  // A parser would append these list items to those of the contract's part.
  const additions = { ...config.additions, mounts: [] };
  const task = Buffer.concat([
    TaskConfig.encode(config).finish(),
    TaskConfigAdditions.encode(additions).finish(),
  ]);
  const wholeHandle = Buffer.concat([
    TaskHandle.encode({ ...handle, config: undefined }).finish(),
    embedded(HANDLE_CONFIG_FIELD, task),
  ]);
  return Buffer.concat([
    StartTaskResponse.encode({ ...response, handle: undefined }).finish(),
    embedded(RESPONSE_HANDLE_FIELD, wholeHandle),
  ]);
}

/** Returns a message encoded as a field of another message. */
function embedded(field: number, message: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of((field << 3) | LENGTH_DELIMITED), varint(message.length), message]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.of(...bytes, rest);
}
