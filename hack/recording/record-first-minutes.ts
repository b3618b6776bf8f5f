import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { drawRecording } from "./draw-recording.ts";
import { type RecordedCommand, recordCommands } from "./record-commands.ts";

/** The instance of `hack/up` without `--data`, which the recording shows. */
const DEFAULT_DATA = "/var/lib/forage-dev";

const COMMANDS: readonly RecordedCommand[] = [
  { text: "sudo hack/up" },
  { text: "sudo hack/forage get pods -n hello" },
  { text: "sudo hack/forage scale container_service/hello 4 -n hello" },
  { text: "sudo hack/forage why -n hello container_service/hello" },
  // Exit code 1: some pods would wait.
  { text: "sudo hack/forage whatif --scale hello/hello=400", exitCode: 1 },
];

const root = join(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: {
    data: { type: "string", default: DEFAULT_DATA },
    out: { type: "string", default: join(root, "docs/pictures/first-minutes.svg") },
  },
});

const lines = await recordCommands(COMMANDS, {
  cwd: root,
  env: { ...process.env, FORAGE_CONFIG: join(values.data, "cli.yaml"), NO_COLOR: "1" },
  translate: (command) =>
    command.replace(/^sudo /, "").replace(/^hack\/up$/, `hack/up --data ${values.data}`),
  redact: (line) =>
    line
      .replaceAll(` --data ${values.data}`, "")
      .replaceAll(values.data, DEFAULT_DATA)
      .replaceAll(`${root}/`, ""),
  monotonicMs: () => performance.now(),
  onLine: (line) => console.error(line),
});
writeFileSync(
  values.out,
  drawRecording(lines, { title: "Forage: the first minutes", columns: 110, rows: 26, restMs: 8_000 }),
);
