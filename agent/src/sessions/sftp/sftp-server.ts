import { encodeAttributes, longName, readAttributes } from "./attributes.ts";
import { Handles, MAX_HANDLES } from "./handles.ts";
import { type RootedFiles, setAttributes } from "./rooted-files.ts";
import {
  MAX_DATA_BYTES,
  MAX_PACKET_BYTES,
  PacketReader,
  PacketWriter,
  packetsOf,
  REQUEST,
  RESPONSE,
  SFTP_VERSION,
  SftpError,
  STATUS,
  type StatusCode,
} from "./wire.ts";

/** The number of entries in one response about a directory. The client repeats its request until there are no more. */
const ENTRIES_AT_ONCE = 100;
/** OpenSSH's own extensions, in the versions that clients know. */
const EXTENSIONS = [
  ["posix-rename@openssh.com", "1"],
  ["statvfs@openssh.com", "2"],
  ["hardlink@openssh.com", "1"],
  ["fsync@openssh.com", "1"],
  ["limits@openssh.com", "1"],
] as const;

/** The response to one request, given its id. */
type Answer = (id: number) => PacketWriter;

/** Serves one client until its input ends. Requests are served one after the other. */
export class SftpServer {
  readonly #files: RootedFiles;
  readonly #write: (packet: Buffer) => Promise<void>;
  readonly #handles = new Handles();

  constructor(files: RootedFiles, write: (packet: Buffer) => Promise<void>) {
    this.#files = files;
    this.#write = write;
  }

  /** Serves the client. Throws SftpError for data that is not SFTP. */
  async serve(input: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      let isFirst = true;
      for await (const packet of packetsOf(input)) {
        const reader = new PacketReader(packet);
        const type = reader.byte();
        if (isFirst !== (type === REQUEST.init))
          throw new SftpError(STATUS.badMessage, "the client must begin with its version");
        await this.#write((isFirst ? version() : await this.#answer(type, reader)).packet());
        isFirst = false;
      }
    } finally {
      await this.#handles.closeAll();
    }
  }

  async #answer(type: number, reader: PacketReader): Promise<PacketWriter> {
    const id = reader.uint32();
    try {
      return (await this.#serve(type, reader))(id);
    } catch (error) {
      return failureOf(error)(id);
    }
  }

  async #serve(type: number, reader: PacketReader): Promise<Answer> {
    switch (type) {
      case REQUEST.open:
      case REQUEST.opendir:
      case REQUEST.close:
      case REQUEST.read:
      case REQUEST.write:
      case REQUEST.readdir:
      case REQUEST.fstat:
      case REQUEST.fsetstat:
        return this.#serveHandle(type, reader);
      case REQUEST.extended:
        return this.#serveExtended(reader);
      default:
        return this.#servePath(type, reader);
    }
  }

  async #serveHandle(type: number, reader: PacketReader): Promise<Answer> {
    const handles = this.#handles;
    const name = reader.text();
    switch (type) {
      case REQUEST.open: {
        const flags = reader.uint32();
        const { mode } = readAttributes(reader);
        handles.assertRoom();
        return handle(handles.addFile(await this.#files.open(name, flags, mode)));
      }
      case REQUEST.opendir:
        handles.assertRoom();
        return handle(handles.addDirectory(await this.#files.openDirectory(name)));
      case REQUEST.close:
        await handles.close(name);
        return done();
      case REQUEST.read:
        return this.#read(name, reader.uint64(), reader.uint32());
      case REQUEST.write: {
        const [offset, data] = [reader.uint64(), reader.bytes()];
        await handles.file(name).write(data, 0, data.length, offset);
        return done();
      }
      case REQUEST.readdir:
        return this.#readDirectory(name);
      case REQUEST.fstat: {
        const stats = await handles.file(name).stat();
        return (id) => response(RESPONSE.attributes, id).raw(encodeAttributes(stats));
      }
      default:
        await setAttributes(handles.file(name), readAttributes(reader));
        return done();
    }
  }

  async #read(name: string, offset: number, desired: number): Promise<Answer> {
    const buffer = Buffer.allocUnsafe(Math.min(desired, MAX_DATA_BYTES));
    const { bytesRead } = await this.#handles.file(name).read(buffer, 0, buffer.length, offset);
    if (bytesRead === 0 && buffer.length > 0) return status(STATUS.endOfFile, "there is no more");
    return (id) => response(RESPONSE.data, id).bytes(buffer.subarray(0, bytesRead));
  }

  async #readDirectory(name: string): Promise<Answer> {
    const { entries } = this.#handles.directory(name);
    const found: Buffer[] = [];
    while (found.length < ENTRIES_AT_ONCE) {
      const next = await entries.next();
      if (next.done) break;
      const { name: entry, stats } = next.value;
      found.push(named(entry, longName(entry, stats), encodeAttributes(stats)));
    }
    if (found.length === 0) return status(STATUS.endOfFile, "there are no more");
    return (id) => response(RESPONSE.name, id).uint32(found.length).raw(Buffer.concat(found));
  }

  async #servePath(type: number, reader: PacketReader): Promise<Answer> {
    const files = this.#files;
    const path = reader.text();
    switch (type) {
      case REQUEST.stat:
      case REQUEST.lstat: {
        const stats = await files.status(path, type === REQUEST.stat);
        return (id) => response(RESPONSE.attributes, id).raw(encodeAttributes(stats));
      }
      case REQUEST.realpath:
        return oneName(files.absolute(path));
      case REQUEST.readlink:
        return oneName(await files.readLink(path));
      case REQUEST.setstat:
        await files.setAttributes(path, readAttributes(reader));
        return done();
      case REQUEST.remove:
        await files.remove(path);
        return done();
      case REQUEST.mkdir:
        await files.makeDirectory(path, readAttributes(reader).mode);
        return done();
      case REQUEST.rmdir:
        await files.removeDirectory(path);
        return done();
      case REQUEST.rename:
        await files.renameToFree(path, reader.text());
        return done();
      case REQUEST.symlink:
        // Unlike in the draft, the target comes first, as in OpenSSH and therefore all clients.
        await files.symbolicLink(path, reader.text());
        return done();
      default:
        return status(STATUS.unsupported, `request ${type} is not supported`);
    }
  }

  async #serveExtended(reader: PacketReader): Promise<Answer> {
    const files = this.#files;
    const name = reader.text();
    switch (name) {
      case "posix-rename@openssh.com":
        await files.rename(reader.text(), reader.text());
        return done();
      case "hardlink@openssh.com":
        await files.link(reader.text(), reader.text());
        return done();
      case "fsync@openssh.com":
        await this.#handles.file(reader.text()).sync();
        return done();
      case "statvfs@openssh.com":
        return this.#fileSystem(reader.text());
      case "limits@openssh.com":
        return (id) =>
          response(RESPONSE.extendedReply, id)
            .uint64(MAX_PACKET_BYTES)
            .uint64(MAX_DATA_BYTES)
            .uint64(MAX_DATA_BYTES)
            .uint64(MAX_HANDLES);
      default:
        return status(STATUS.unsupported, `extension ${name} is not supported`);
    }
  }

  async #fileSystem(path: string): Promise<Answer> {
    const { bsize, blocks, bfree, bavail, files, ffree } = await this.#files.fileSystem(path);
    const numbers = [bsize, bsize, blocks, bfree, bavail, files, ffree, ffree];
    // No identification, no flags, and the longest name that Linux's file systems accept.
    return (id) => [...numbers, 0, 0, 255].reduce((packet, value) => packet.uint64(value), extended(id));
  }
}

function version(): PacketWriter {
  const packet = new PacketWriter(RESPONSE.version).uint32(SFTP_VERSION);
  for (const [name, number] of EXTENSIONS) packet.bytes(name).bytes(number);
  return packet;
}

function response(type: number, id: number): PacketWriter {
  return new PacketWriter(type).uint32(id);
}

function extended(id: number): PacketWriter {
  return response(RESPONSE.extendedReply, id);
}

function status(code: StatusCode, message: string): Answer {
  // The last field is the language of the message, which clients ignore.
  return (id) => response(RESPONSE.status, id).uint32(code).bytes(message).bytes("");
}

function done(): Answer {
  return status(STATUS.ok, "");
}

function handle(name: string): Answer {
  return (id) => response(RESPONSE.handle, id).bytes(name);
}

function oneName(name: string): Answer {
  // Without attributes, which clients don't expect in this response.
  const noAttributes = Buffer.alloc(4);
  return (id) =>
    response(RESPONSE.name, id)
      .uint32(1)
      .raw(named(name, name, noAttributes));
}

function named(name: string, long: string, attributes: Buffer): Buffer {
  return new PacketWriter(0).bytes(name).bytes(long).raw(attributes).fields();
}

function failureOf(error: unknown): Answer {
  if (error instanceof SftpError) return status(error.status, error.message);
  const { code = "", message = "" } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
    case "NOT_FOUND":
      return status(STATUS.noSuchFile, "there is no such file");
    case "EACCES":
    case "EPERM":
      return status(STATUS.permissionDenied, "the workspace's user may not do this");
    case "ENOSPC":
    case "EDQUOT":
      return status(STATUS.failure, "no space is left");
    case "EROFS":
      return status(STATUS.failure, "it is on a read-only file system");
    default:
      // Node's own messages contain descriptors, which mean nothing to a client.
      return status(STATUS.failure, code.startsWith("E") ? code : (message.split("\n", 1)[0] ?? ""));
  }
}
