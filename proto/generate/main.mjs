// Turns the .proto sources into gen/. Plain JavaScript, since it runs before anything else does and on any
// node from 20 on. Quick when nothing changed: gen/.inputs holds the hash of all that determines the output.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { fieldTable } from "./field-table.mjs";
import { fileDescriptors } from "./file-descriptors.mjs";
import { useDurationText } from "./use-duration-text.mjs";
import { useKeptWriters } from "./use-kept-writers.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const gen = join(root, "gen");
const stamp = join(gen, ".inputs");
const require = createRequire(import.meta.url);

const hash = hashInputs();
if (!isCurrent(hash)) {
  generate(hash);
}

/** @param {string} hash */
function isCurrent(hash) {
  if (!fs.existsSync(stamp)) {
    return false;
  }
  const [stamped, ...outputs] = fs.readFileSync(stamp, "utf8").trim().split("\n");
  return stamped === hash && outputs.every((output) => fs.existsSync(join(gen, output)));
}

function hashInputs() {
  const inputs = [
    ...files(root).filter(
      (file) => file.endsWith(".proto") || /^(buf|generate\/)/.test(relative(root, file)),
    ),
    ...["ts-proto", "@bufbuild/buf", "@bufbuild/protobuf"].map(packageFile),
  ];
  const sum = createHash("sha256");
  for (const file of inputs.sort()) {
    sum
      .update(`${relative(root, file)}\0`)
      .update(fs.readFileSync(file))
      .update("\0");
  }
  return sum.digest("hex");
}

/** @param {string} hash */
function generate(hash) {
  // Made elsewhere and moved in file by file: whoever imports from gen/ meanwhile never finds a half of it.
  const stage = fs.mkdtempSync(join(tmpdir(), "forage-proto-"));
  try {
    const descriptor = join(stage, "descriptor.binpb");
    buf("generate", "--output", stage);
    buf("build", "--as-file-descriptor-set", "--output", descriptor);
    const made = join(stage, "gen");
    useDurationText(join(made, "google/protobuf/duration.ts"));
    for (const file of files(made)) {
      useKeptWriters(file, made);
    }
    const descriptors = fs.readFileSync(descriptor);
    fs.writeFileSync(join(made, "forest-schema.ts"), fieldTable(descriptors, "forest.v1"));
    fs.writeFileSync(join(made, "forage-schema.ts"), fieldTable(descriptors, "forage.operator.v1"));
    fs.writeFileSync(join(made, "file-descriptors.ts"), fileDescriptors(descriptors));
    const outputs = files(made).map((file) => relative(made, file));
    for (const output of outputs) {
      replace(join(gen, output), fs.readFileSync(join(made, output)));
    }
    for (const file of fs.existsSync(gen) ? files(gen) : []) {
      if (!outputs.includes(relative(gen, file)) && file !== stamp) {
        fs.rmSync(file);
      }
    }
    replace(stamp, Buffer.from(`${[hash, ...outputs].join("\n")}\n`));
  } finally {
    fs.rmSync(stage, { recursive: true, force: true });
  }
}

/** @param {string[]} args */
function buf(...args) {
  execFileSync(require.resolve("@bufbuild/buf/bin/buf"), args, { cwd: root, stdio: "inherit" });
}

/**
 * @param {string} file
 * @param {Buffer} content
 */
function replace(file, content) {
  if (fs.existsSync(file) && fs.readFileSync(file).equals(content)) {
    return;
  }
  fs.mkdirSync(dirname(file), { recursive: true });
  const fresh = `${file}.${process.pid}`;
  fs.writeFileSync(fresh, content);
  fs.renameSync(fresh, file);
}

/** The package.json, which changes with the version. @param {string} name */
function packageFile(name) {
  for (const dir of require.resolve.paths(name) ?? []) {
    const file = join(dir, name, "package.json");
    if (fs.existsSync(file)) {
      return file;
    }
  }
  throw new Error(`${name} is not installed`);
}

/** @param {string} dir @returns {string[]} */
function files(dir) {
  return fs.readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    if (!entry.isDirectory()) {
      return [path];
    }
    return dir === root && (entry.name === "gen" || entry.name === "node_modules") ? [] : files(path);
  });
}
