import { WorkspaceNodeServiceClient } from "@forage/proto/forage/workspaces/v1/workspaces";
import { credentials } from "@grpc/grpc-js";
import { systemClock } from "../src/clock.ts";
import { JournalKey } from "../src/journal/journal-key.ts";
import { ChildRunner } from "../src/volumes/run-child.ts";
import { HostContent } from "../src/workspaces/host-content.ts";
import { SyncClient } from "../src/workspaces/sync-client.ts";
import { WorkspaceLayout } from "../src/workspaces/workspace-layout.ts";
import { WorkspaceRecords } from "../src/workspaces/workspace-records.ts";
import { Workspaces } from "../src/workspaces/workspaces.ts";

/*
 * Runs an agent's part of workspaces in a separate process, so that tests can kill it. Arguments: directory, port, key.
 */

const [directory = "", port = "", key = ""] = process.argv.slice(2);
const connect = async () =>
  new WorkspaceNodeServiceClient(`127.0.0.1:${port}`, credentials.createInsecure(), {
    "grpc.enable_retries": 0,
  });
const layout = new WorkspaceLayout(directory);
const log = { info: () => undefined, warn: () => undefined };
const records = new WorkspaceRecords({
  ...{ layout, key: new JournalKey(Buffer.from(key, "hex"), "test") },
  noteDamage: () => undefined,
});
const secrets = { read: async () => ({}), write: async () => undefined };
const git = { proxyUrl: "", refuse: () => undefined, secrets };
const actions = new HostContent({
  layout,
  records,
  connect,
  git,
  warn: log.warn,
  children: new ChildRunner(),
});
const parts = { clock: systemClock, random: () => 0.01, records, actions, log };
const workspaces = await Workspaces.open({ ...parts, backOff: { baseMs: 50, capMs: 200 } });
const sync = new SyncClient({
  ...{ clock: systemClock, random: () => 0.01, log, connect },
  ids: () => workspaces.ids,
  reportOf: (id) => workspaces.reportOf(id),
  apply: (response) => workspaces.apply(response),
});
workspaces.onChange((id) => sync.changed(id));
workspaces.start({ active: () => false, retryStart: () => undefined });
await sync.run(new AbortController().signal);
