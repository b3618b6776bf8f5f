import { type BasePluginServer, BasePluginService, PluginType } from "@forage/proto/plugins/base/proto/base";
import type { Spec } from "@forage/proto/plugins/shared/hclspec/hcl_spec";
import type { Server } from "@grpc/grpc-js";
import { DriverError } from "../driver-error.ts";
import { type OnCallError, unary } from "../rpc/handlers.ts";

export interface BasePluginFront {
  /** The name of the driver in a job. */
  readonly name: string;
  readonly version: string;
  configSchema(): Spec;
  /** Applies the configuration. Throws INVALID with every violation. Has no effect outside the process. */
  setConfig(msgpack: Uint8Array): void;
}

/** The only version of Nomad's plugin API so far. */
const API_VERSION = "v0.1.0";

/** Registers Nomad's BasePlugin service. */
export function addBasePlugin(server: Server, front: BasePluginFront, onError: OnCallError): void {
  const implementation: BasePluginServer = {
    pluginInfo: unary("PluginInfo", onError, async () => ({
      type: PluginType.DRIVER,
      pluginApiVersions: [API_VERSION],
      pluginVersion: front.version,
      name: front.name,
    })),
    configSchema: unary("ConfigSchema", onError, async () => ({ spec: front.configSchema() })),
    setConfig: unary("SetConfig", onError, async ({ msgpackConfig, pluginApiVersion }) => {
      if (pluginApiVersion !== "" && pluginApiVersion !== API_VERSION)
        throw new DriverError(
          "INVALID",
          `SetConfig: plugin API version ${pluginApiVersion} is not supported; this plugin supports ${API_VERSION}`,
        );
      front.setConfig(msgpackConfig);
      return {};
    }),
  };
  server.addService(BasePluginService, implementation);
}
