import {
  type CapabilitiesResponse,
  DriverCapabilities,
  DriverService,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { handleUnaryCall, MethodDefinition } from "@grpc/grpc-js";

/**
 * The additions of newer versions of Nomad to the Driver service that this driver uses. The contract is frozen, so these few
 * bytes are written by hand.
 */
export interface NewerCapabilities extends DriverCapabilities {
  /** Since Nomad 1.6: Nomad collects no logs of the tasks. */
  readonly disableLogCollection: boolean;
}

/** `disable_log_collection: true`, field 8 of DriverCapabilities. */
const LOG_COLLECTION_DISABLED = Buffer.of(0x40, 0x01);
/** `capabilities`, field 1 of CapabilitiesResponse. */
const CAPABILITIES_TAG = 0x0a;
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
  /** Since Nomad 2.0: before the driver is used. */
  init: emptyCall("Init"),
  /** Since Nomad 2.0: when the client stops. Tasks keep running, so there is nothing to do; the plugin ends by its controller. */
  shutdown: emptyCall("Shutdown"),
} as const;

const answerNothing: handleUnaryCall<Empty, Empty> = (_call, callback) => callback(null, {});

/** Handlers of the calls that the contract does not have. */
export const NEWER_CALLS = { init: answerNothing, shutdown: answerNothing } as const;

function serializeCapabilities({ capabilities }: CapabilitiesResponse): Buffer {
  if (capabilities === undefined) return NOTHING;
  const isDisabled = "disableLogCollection" in capabilities && capabilities.disableLogCollection === true;
  const inner = Buffer.concat([
    DriverCapabilities.encode(capabilities).finish(),
    isDisabled ? LOG_COLLECTION_DISABLED : NOTHING,
  ]);
  // Some twenty bytes: the length is one byte of a varint, which holds up to 127.
  return Buffer.concat([Buffer.of(CAPABILITIES_TAG, inner.length), inner]);
}
