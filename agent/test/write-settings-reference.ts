// Writes docs/reference/agent-settings.md from the schema of agent.yaml.
import { readFileSync, writeFileSync } from "node:fs";
import { settingsPage } from "./support/settings-page.ts";

const source = new URL("../src/settings.ts", import.meta.url);
const page = new URL("../../docs/reference/agent-settings.md", import.meta.url);
writeFileSync(page, settingsPage(readFileSync(source, "utf8")));
