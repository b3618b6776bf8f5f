import { readFileSync } from "node:fs";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { systemClock } from "../../src/clock.ts";
import type { DriverOptions } from "../../src/driver/config/driver-options.ts";
import type { TaskOptions } from "../../src/driver/config/task-options.ts";
import { addDriverService } from "../../src/driver/driver-service.ts";
import { openTaskDriver } from "../../src/driver/tasks/open-task-driver.ts";

/**
 * `driver-program.ts SOCKET OPTIONS_FILE BOOT_ID_FILE` serves the driver's tasks on a Unix socket, as a separate
 * program that a test can kill. A task's configuration is JSON here, so that tests of tasks are independent of Nomad's
 * encoding.
 */
const [socket = "", optionsFile = "", bootIdFile = ""] = process.argv.slice(2);
const options: DriverOptions = JSON.parse(readFileSync(optionsFile, "utf8"));
const log = (level: string, event: string, fields = {}): void =>
  void process.stderr.write(`${JSON.stringify({ level, event, ...fields })}\n`);
const driver = await openTaskDriver({ options, clock: systemClock, log, bootIdFile });
const server = new Server();
addDriverService(
  server,
  {
    taskConfigSchema: () => ({ block: undefined }),
    capabilities: () => {
      throw new Error("not part of this program");
    },
    fingerprint: () => {
      throw new Error("not part of this program");
    },
    parseTask: (bytes): TaskOptions => JSON.parse(Buffer.from(bytes).toString()),
    tasks: async () => driver,
  },
  (method, error) => log("error", "call-failed", { method, error: String(error) }),
);
await new Promise<void>((resolve, reject) =>
  server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
    error ? reject(error) : resolve(),
  ),
);
process.stdout.write("ready\n");
