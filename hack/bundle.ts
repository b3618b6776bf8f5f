#!/usr/bin/env node
import { join } from "node:path";
import { bundlePrograms, PROGRAMS } from "./bundling/bundle-programs.ts";

const root = join(import.meta.dirname, "..");
const { built, missing } = await bundlePrograms({ root, outDir: join(root, "dist"), programs: PROGRAMS });
for (const name of built) console.error(`bundled ${name} into dist/`);
for (const name of missing) console.error(`left out ${name}: ${PROGRAMS[name]} is not there`);
