import { GitServer } from "../../hack/lib/git-server.ts";

/** Serves the repositories of a directory at an address, and prints the URL of one of them. */
const [root = "", address = "", repository = ""] = process.argv.slice(2);
const server = new GitServer(root);
await server.start(address);
console.log(server.url(repository));
