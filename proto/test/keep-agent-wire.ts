// Keeps the present wire between agents and coordinators as that of the previous version. Run it when a version is released.
import { describeAgentWire } from "./agent-wire.ts";
import { buildRegistry } from "./descriptor.ts";
import { writePreviousWire } from "./wire-file.ts";

await writePreviousWire(describeAgentWire(await buildRegistry()));
