// Writes docs/reference/coordinator.md from the schema of coordinator.yaml.
import { readFileSync, writeFileSync } from "node:fs";
import { configReference } from "./support/config-reference.ts";

const source = new URL("../src/config.ts", import.meta.url);
const page = new URL("../../docs/reference/coordinator.md", import.meta.url);
writeFileSync(page, configReference(readFileSync(source, "utf8")));
