import assert from "node:assert/strict";
import { test } from "node:test";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionService,
} from "@forage/proto/grpc/reflection/v1/reflection";
import { ServerReflectionService as AlphaService } from "@forage/proto/grpc/reflection/v1alpha/reflection";
import { Client, Metadata, status } from "@grpc/grpc-js";
import { servedDefinitions } from "../src/services.ts";
import { callsOf } from "./support/calls.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
type Question = ServerReflectionRequest["messageRequest"];

/** Sends all requests on one stream, and returns the answers. */
async function ask(
  world: World,
  token: string,
  questions: readonly Question[],
  definition: typeof ServerReflectionService | typeof AlphaService = ServerReflectionService,
): Promise<ServerReflectionResponse["messageResponse"][]> {
  const client = new Client(world.address, channelCredentials({ caPem: world.caPem }));
  const metadata = token === "" ? new Metadata() : bearerMetadata(token);
  const stream = callsOf(definition, client, metadata).serverReflectionInfo();
  try {
    for (const messageRequest of questions) stream.write({ host: "", messageRequest });
    stream.end();
    const answers: ServerReflectionResponse["messageResponse"][] = [];
    for await (const { messageResponse } of stream) answers.push(messageResponse);
    return answers;
  } finally {
    client.close();
  }
}

const symbol = (value: string): Question => ({ $case: "fileContainingSymbol", value });

function filesOf(answer: ServerReflectionResponse["messageResponse"]) {
  assert.equal(answer?.$case, "fileDescriptorResponse");
  const bytes = answer?.$case === "fileDescriptorResponse" ? answer.value.fileDescriptorProto : [];
  return bytes.map((each) => fromBinary(FileDescriptorProtoSchema, each));
}

test("describes every method of every service of the port", LIMIT, async (t) => {
  const world = await startWorld(t);
  const viewer = await world.token("viewer", ["shop"]);
  for (const definition of [ServerReflectionService, AlphaService]) {
    const [list] = await ask(world, viewer, [{ $case: "listServices", value: "*" }], definition);
    assert.equal(list?.$case, "listServicesResponse");
    const services = list?.$case === "listServicesResponse" ? list.value.service.map(({ name }) => name) : [];
    const paths: string[] = [];
    for (const name of services) {
      const [answer] = await ask(world, viewer, [symbol(name)], definition);
      // A registry refuses files with missing imports or types.
      const registry = createFileRegistry(
        create(FileDescriptorSetSchema, { file: filesOf(answer).reverse() }),
      );
      const service = registry.getService(name);
      for (const method of service?.methods ?? []) paths.push(`/${name}/${method.name}`);
    }
    const served = servedDefinitions.flatMap((each) => Object.values(each).map(({ path }) => path));
    assert.deepEqual(paths.sort(), served.sort());
  }
});

test("finds files by name, methods and nested types, and sends a dependency once", LIMIT, async (t) => {
  const world = await startWorld(t);
  const viewer = await world.token("viewer");
  const answers = await ask(world, viewer, [
    { $case: "fileByFilename", value: "google/protobuf/duration.proto" },
    symbol("forest.v1.ForageService.ApplyResources"),
    symbol("forest.v1.ApplyResourcesRequest.LabelsEntry"),
    { $case: "allExtensionNumbersOfType", value: "forest.v1.Container" },
  ]);
  const names = answers.slice(0, 3).map((answer) => filesOf(answer).map(({ name }) => name));
  assert.deepEqual(names, [
    ["google/protobuf/duration.proto"],
    ["forest/v1/forage.proto"],
    ["forest/v1/forage.proto"],
  ]);
  assert.deepEqual(answers[3], {
    $case: "allExtensionNumbersResponse",
    value: { baseTypeName: "forest.v1.Container", extensionNumber: [] },
  });
});

test("answers NOT_FOUND for symbols that the port does not serve", LIMIT, async (t) => {
  const world = await startWorld(t);
  const viewer = await world.token("viewer");
  const answers = await ask(world, viewer, [
    symbol("forage.store.v1.PodRecord"),
    symbol("hashicorp.nomad.plugins.drivers.proto.Driver"),
    symbol("__proto__"),
    { $case: "fileByFilename", value: "../../etc/passwd" },
    {
      $case: "fileContainingExtension",
      value: { containingType: "forest.v1.Container", extensionNumber: 1 },
    },
    undefined,
  ]);
  const codes = answers.map((answer) =>
    answer?.$case === "errorResponse" ? answer.value.errorCode : answer?.$case,
  );
  const { NOT_FOUND, INVALID_ARGUMENT } = status;
  assert.deepEqual(codes, [NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, INVALID_ARGUMENT]);
  await assert.rejects(ask(world, viewer, [symbol("x".repeat(20_000))]), { code: INVALID_ARGUMENT });
});

test("requires a token with the role viewer", LIMIT, async (t) => {
  const world = await startWorld(t);
  const question: Question = { $case: "listServices", value: "" };
  await assert.rejects(ask(world, "", [question]), { code: status.UNAUTHENTICATED });
  const reader = await world.token("destination-reader");
  await assert.rejects(ask(world, reader, [question]), {
    code: status.PERMISSION_DENIED,
    details: /needs the role viewer/,
  });
});
