import { FILE_DESCRIPTORS, type FileDescriptor } from "@forage/proto/file-descriptors";
import type {
  ServerReflectionRequest,
  ServerReflectionResponse,
  ServerReflectionService,
} from "@forage/proto/grpc/reflection/v1/reflection";
import { status } from "@grpc/grpc-js";
import { CoordinatorError } from "../errors.ts";
import type { Handlers } from "./serve.ts";

/**
 * The length limit of names of files and symbols. Longer names are refused before they are hashed
 * or echoed.
 */
const MAX_NAME_CHARS = 512;

/**
 * Implements `grpc.reflection.v1`, which describes the given services and everything to which their
 * messages refer.
 */
export function reflectionService(services: readonly string[]): Handlers<typeof ServerReflectionService> {
  const files = new DescribedFiles(services);
  return {
    serverReflectionInfo: async function* (requests) {
      const sent = new Set<string>();
      for await (const request of requests) yield answer(request, services, files, sent);
    },
  };
}

type Answer = ServerReflectionResponse["messageResponse"];

/**
 * Answers one request. `sent` holds the files that this stream has already sent; clients keep them.
 */
function answer(
  request: ServerReflectionRequest,
  services: readonly string[],
  files: DescribedFiles,
  sent: Set<string>,
): ServerReflectionResponse {
  assertShort(request);
  const messageResponse = lookUp(request.messageRequest, services, files, sent);
  return { validHost: request.host, originalRequest: request, messageResponse };
}

function assertShort({ host, messageRequest }: ServerReflectionRequest): void {
  const asked = messageRequest?.value ?? "";
  const name = typeof asked === "string" ? asked : asked.containingType;
  if (Math.max(host.length, name.length) > MAX_NAME_CHARS)
    throw new CoordinatorError(
      "INVALID",
      `a name in a reflection request may have at most ${MAX_NAME_CHARS} characters`,
    );
}

function lookUp(
  asked: ServerReflectionRequest["messageRequest"],
  services: readonly string[],
  files: DescribedFiles,
  sent: Set<string>,
): Answer {
  switch (asked?.$case) {
    case "listServices":
      return {
        $case: "listServicesResponse",
        value: { service: services.map((name) => ({ name })) },
      };
    case "fileByFilename":
      return described(files.named(asked.value), "file", asked.value, files, sent);
    case "fileContainingSymbol":
      return described(files.defining(asked.value), "symbol", asked.value, files, sent);
    case "fileContainingExtension":
      return notFound("extension of", asked.value.containingType);
    case "allExtensionNumbersOfType": {
      if (files.defining(asked.value) === undefined) return notFound("type", asked.value);
      return {
        $case: "allExtensionNumbersResponse",
        value: { baseTypeName: asked.value, extensionNumber: [] },
      };
    }
    case undefined:
      return failure(status.INVALID_ARGUMENT, "the request is empty: set one field of message_request");
    default:
      return asked satisfies never;
  }
}

function described(
  file: FileDescriptor | undefined,
  what: string,
  name: string,
  files: DescribedFiles,
  sent: Set<string>,
): Answer {
  if (file === undefined) return notFound(what, name);
  const missing = files.withDependencies(file).filter((each) => each === file || !sent.has(each.name));
  for (const each of missing) sent.add(each.name);
  const fileDescriptorProto = missing.map(({ base64 }) => Buffer.from(base64, "base64"));
  return { $case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function notFound(what: string, name: string): Answer {
  return failure(status.NOT_FOUND, `no service of this port has the ${what} "${name.slice(0, 100)}"`);
}

function failure(errorCode: number, errorMessage: string): Answer {
  return { $case: "errorResponse", value: { errorCode, errorMessage } };
}

/** The .proto files that define the given services, with their imports. */
class DescribedFiles {
  readonly #byName = new Map<string, FileDescriptor>();
  readonly #bySymbol = new Map<string, FileDescriptor>();

  constructor(services: readonly string[]) {
    const all = new Map(FILE_DESCRIPTORS.map((file) => [file.name, file]));
    const add = (file: FileDescriptor): void => {
      if (this.#byName.has(file.name)) return;
      this.#byName.set(file.name, file);
      for (const symbol of file.symbols) this.#bySymbol.set(symbol, file);
      for (const name of file.dependencies) {
        const dependency = all.get(name);
        if (dependency !== undefined) add(dependency);
      }
    };
    for (const file of FILE_DESCRIPTORS)
      if (file.symbols.some((symbol) => services.includes(symbol))) add(file);
  }

  named(name: string): FileDescriptor | undefined {
    return this.#byName.get(name);
  }

  defining(symbol: string): FileDescriptor | undefined {
    return this.#bySymbol.get(symbol);
  }

  /** Returns the file followed by its imports, each file once. */
  withDependencies(file: FileDescriptor, found = new Set<FileDescriptor>()): FileDescriptor[] {
    found.add(file);
    for (const name of file.dependencies) {
      const dependency = this.#byName.get(name);
      if (dependency !== undefined && !found.has(dependency)) this.withDependencies(dependency, found);
    }
    return [...found];
  }
}
