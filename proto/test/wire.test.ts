import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { clone, createFileRegistry } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FileDescriptorProto,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { buildDescriptor } from "./descriptor.ts";
import { describeWire } from "./wire.ts";
import { compareWire, explain, FROZEN_PACKAGES, objections } from "./wire-change.ts";
import { readPinnedWire, readPreviousWire } from "./wire-file.ts";

const descriptor = await buildDescriptor();
const current = describeWire(createFileRegistry(descriptor));

test("the wire format is the one recorded in wire.txt", async () => {
  const difference = explain(compareWire(await readPinnedWire(), current));
  assert.ok(difference === "", difference);
});

test("agents and coordinators understand everything that the previous version sends", async () => {
  const { removed } = compareWire(await readPreviousWire(), current);
  assert.deepEqual(removed, []);
});

test("every frozen package exists", () => {
  for (const name of FROZEN_PACKAGES) {
    assert.ok(current.includes(`package ${name} proto3`), name);
  }
});

describe("a change of the wire format is reported", () => {
  const CONTAINER = "field forest.v1.Container";
  const cases: Record<
    string,
    { change: (file: FileDescriptorProto) => void; removed?: string; added?: string }
  > = {
    "a field renumbered": {
      change: (file) => Object.assign(field(file, "Container", "image"), { number: 99 }),
      removed: `${CONTAINER} 2 string image json=image`,
      added: `${CONTAINER} 99 string image json=image`,
    },
    "a field renamed": {
      change: (file) => Object.assign(field(file, "Container", "image"), { name: "picture" }),
      added: `${CONTAINER} 2 string picture json=image`,
    },
    "another JSON name": {
      change: (file) => Object.assign(field(file, "Container", "image"), { jsonName: "img" }),
      added: `${CONTAINER} 2 string image json=img`,
    },
    "another type": {
      change: (file) =>
        Object.assign(field(file, "Container", "image"), { type: FieldDescriptorProto_Type.BYTES }),
      added: `${CONTAINER} 2 bytes image json=image`,
    },
    "a list made single": {
      change: (file) =>
        Object.assign(field(file, "Container", "args"), { label: FieldDescriptorProto_Label.OPTIONAL }),
      added: `${CONTAINER} 4 string args json=args`,
    },
    "a list no longer packed": {
      change: (file) =>
        Object.assign(field(file, "PodSecurityContext", "supplemental_groups"), {
          options: { packed: false },
        }),
      added:
        "field forest.v1.PodSecurityContext 5 repeated int64 supplemental_groups json=supplementalGroups unpacked",
    },
    "a field moved into a oneof": {
      change: (file) => Object.assign(field(file, "ForageResource", "name"), { oneofIndex: 0 }),
      added: "field forest.v1.ForageResource 1 string name json=name oneof=spec",
    },
    "a oneof renamed": {
      change: (file) => Object.assign(message(file, "EnvVar").oneofDecl[0] ?? {}, { name: "source" }),
      added: "field forest.v1.EnvVar 2 string value json=value oneof=source",
    },
    "another map value": {
      change: (file) => {
        const entry = message(file, "ResourceList").nestedType[0];
        Object.assign(entry?.field[1] ?? {}, { type: FieldDescriptorProto_Type.UINT64 });
      },
      added: "field forest.v1.ResourceList 4 map<string, uint64> extended json=extended",
    },
    "a field removed": {
      change: (file) => message(file, "Container").field.pop(),
      removed: `${CONTAINER} 17 bool tty json=tty`,
    },
    "a number and a name reserved": {
      change: (file) => {
        message(file, "Container").reservedName.push("shell");
        Object.assign(message(file, "Container"), { reservedRange: [{ start: 20, end: 23 }] });
      },
      added: 'reserved forest.v1.Container 20 to 22\nreserved forest.v1.Container "shell"',
    },
    "a stream made a single answer": {
      change: (file) => Object.assign(file.service[0]?.method[1] ?? {}, { serverStreaming: false }),
      removed:
        "rpc forest.v1.ForageService.WatchRollout (forest.v1.WatchRolloutRequest) returns (stream forest.v1.RolloutEvent)",
    },
    "a service renamed": {
      change: (file) => Object.assign(file.service[0] ?? {}, { name: "Forage" }),
      added: "service forest.v1.Forage",
    },
    "an enum value renumbered": {
      change: (file) => Object.assign(file.enumType[0]?.value[5] ?? {}, { number: 6 }),
      added: "value forest.v1.RolloutStatus 6 ROLLOUT_STATUS_ROLLED_BACK",
    },
  };
  for (const [title, { change, removed, added }] of Object.entries(cases)) {
    test(title, () => {
      const changed = clone(FileDescriptorSetSchema, descriptor);
      const file = changed.file.find((one) => one.package === "forest.v1");
      assert.ok(file);
      change(file);
      const difference = compareWire(current, describeWire(createFileRegistry(changed)));
      assert.notEqual(explain(difference), "");
      for (const line of removed?.split("\n") ?? []) {
        assert.ok(difference.removed.includes(line), explain(difference));
      }
      for (const line of added?.split("\n") ?? []) {
        assert.ok(difference.added.includes(line), explain(difference));
      }
    });
  }
});

describe("accepting a change", () => {
  const ours = "field forage.agent.v1.Hello 8 string region json=region";

  test("a compatible addition is accepted, and the failure explains how", () => {
    const change = compareWire(["message forage.agent.v1.Hello"], ["message forage.agent.v1.Hello", ours]);
    assert.deepEqual(objections(change, { breaking: false }), []);
    assert.match(explain(change), /\+ field forage\.agent\.v1\.Hello 8[\s\S]*npm run wire:accept -w proto/);
  });

  test("a removal has to be marked as breaking", () => {
    const change = compareWire([ours], []);
    assert.equal(objections(change, { breaking: false }).length, 1);
    assert.deepEqual(objections(change, { breaking: true }), []);
    assert.doesNotMatch(explain(change), /wire:accept/);
  });

  test("a frozen contract can't even be extended", () => {
    const change = compareWire([], ["field wsman.PortSpec 5 string protocol json=protocol"]);
    assert.match(objections(change, { breaking: true }).join(), /^wsman is a contract/);
    assert.doesNotMatch(explain(change), /wire:accept/);
  });

  test("a package whose name begins with a frozen one is not frozen", () => {
    const change = compareWire([], ["message wsmanager.Foo"]);
    assert.deepEqual(objections(change, { breaking: false }), []);
  });
});

function message(file: FileDescriptorProto, name: string): DescriptorProto {
  const found = file.messageType.find((one) => one.name === name);
  assert.ok(found, name);
  return found;
}

function field(file: FileDescriptorProto, messageName: string, name: string) {
  const found = message(file, messageName).field.find((one) => one.name === name);
  assert.ok(found, name);
  return found;
}
