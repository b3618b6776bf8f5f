import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

const BACKEND = "/usr/lib/git-core/git-http-backend";

export interface GitServerOptions {
  /** `user:password`. If undefined, the server is open to everyone. */
  readonly password?: string;
}

/** Serves the bare repositories of a directory by Git's smart HTTP protocol, and other paths by handlers. */
export class GitServer {
  readonly #server: Server;
  readonly #root: string;
  readonly #password: string | undefined;
  readonly handlers = new Map<string, (response: ServerResponse, request: IncomingMessage) => void>();
  /** Called for each request of Git, before its answer. */
  onRequest: (path: string) => Promise<void> = async () => undefined;
  /** The statuses with which the next requests of Git are answered. */
  readonly faults: number[] = [];
  readonly requests: string[] = [];

  constructor(root: string, { password }: GitServerOptions = {}) {
    this.#root = root;
    this.#password = password;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  async start(address = "127.0.0.1"): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, address, resolve));
  }

  url(path: string): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address}:${port}/${path}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", "http://server");
    const handler = this.handlers.get(url.pathname.slice(1));
    if (handler !== undefined) return handler(response, request);
    this.requests.push(url.pathname);
    await this.onRequest(url.pathname);
    const fault = this.faults.shift();
    if (fault !== undefined) return void response.writeHead(fault).end();
    const given = Buffer.from(request.headers.authorization?.split(" ")[1] ?? "", "base64").toString();
    if (this.#password !== undefined && given !== this.#password)
      return void response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
    this.#runBackend(request, response, url);
  }

  #runBackend(request: IncomingMessage, response: ServerResponse, url: URL): void {
    const backend = spawn(BACKEND, {
      env: {
        ...{ PATH: process.env.PATH, GIT_PROJECT_ROOT: this.#root, GIT_HTTP_EXPORT_ALL: "1" },
        ...{ PATH_INFO: url.pathname, QUERY_STRING: url.search.slice(1) },
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
        GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
        ...{ GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "safe.directory", GIT_CONFIG_VALUE_0: "*" },
      },
      stdio: ["pipe", "pipe", "ignore"],
    });
    backend.stdin.on("error", () => undefined);
    request.pipe(backend.stdin);
    let head = Buffer.alloc(0);
    let headed = false;
    backend.stdout.on("data", (chunk: Buffer) => {
      if (headed) return void response.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      headed = true;
      const lines = head.subarray(0, end).toString().split("\r\n");
      const headers = lines.map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]);
      const status = headers.find(([name]) => name === "Status")?.[1];
      response.writeHead(
        status === undefined ? 200 : Number.parseInt(status, 10),
        Object.fromEntries(headers),
      );
      response.write(head.subarray(end + 4));
    });
    backend.on("close", () => response.end());
  }
}

/** Makes a bare repository with commits on `main` and a branch `feature`. Returns the commits of `main`, oldest first. */
export function makeRepository(
  root: string,
  name: string,
  files: Readonly<Record<string, string>> = {},
): string[] {
  const work = join(root, `${name}.work`);
  const git = (...args: string[]): string => {
    const identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always"];
    const { status, stdout, stderr } = spawnSync("git", [...identity, "-C", work, ...args], {
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
    return stdout.trim();
  };
  spawnSync("git", ["init", "-q", "-b", "main", work]);
  const commits: string[] = [];
  for (const text of ["one", "two", "three"]) {
    const write = { ...files, "file.txt": text };
    for (const [path, content] of Object.entries(write))
      spawnSync("sh", ["-c", 'mkdir -p "$(dirname "$1")"; cat > "$1"', "sh", join(work, path)], {
        input: content,
      });
    git("add", "-A");
    git("commit", "-q", "-m", text);
    commits.push(git("rev-parse", "HEAD"));
  }
  git("checkout", "-q", "-b", "feature");
  git("commit", "-q", "--allow-empty", "-m", "feature");
  git("checkout", "-q", "main");
  spawnSync("git", ["clone", "-q", "--bare", work, join(root, `${name}.git`)]);
  spawnSync("git", ["-C", join(root, `${name}.git`), "config", "uploadpack.allowAnySHA1InWant", "true"]);
  return commits;
}

/** Adds submodules to a repository, by path and URL, at the given commit. */
export function addSubmodules(
  root: string,
  name: string,
  commit: string,
  urls: Readonly<Record<string, string>>,
): void {
  const work = join(root, `${name}.work`);
  const text = Object.entries(urls).map(
    ([path, url]) => `[submodule "${path}"]\n\tpath = ${path}\n\turl = ${url}\n`,
  );
  writeFileSync(join(work, ".gitmodules"), text.join(""));
  const identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
  const links = Object.keys(urls).map((path) => [
    "update-index",
    "--add",
    "--cacheinfo",
    `160000,${commit},${path}`,
  ]);
  const bare = join(root, `${name}.git`);
  for (const args of [
    ["add", ".gitmodules"],
    ...links,
    ["commit", "-qm", "submodules"],
    ["push", "-q", bare, "main"],
  ]) {
    const { status, stderr } = spawnSync("git", [...identity, "-C", work, ...args], { encoding: "utf8" });
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
  }
}
