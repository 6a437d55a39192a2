// The official TypeScript SDK. Arguments: target (JSON), project directory, tools directory.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

// The SDK is installed beside the Node that runs this, not beside this file.
const require = createRequire(path.join(path.dirname(process.execPath), "..", "..", "package.json"));
const sdk = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
const { SSEClientTransport } = await sdk("client/sse.js");
const { ListRootsRequestSchema, ToolListChangedNotificationSchema } = await sdk("types.js");

const [target, project, tools] = [JSON.parse(process.argv[2]), ...process.argv.slice(3)];

function transport() {
  if (target.url) return new StreamableHTTPClientTransport(new URL(target.url));
  if (target.sse) return new SSEClientTransport(new URL(target.sse));
  const [command, ...args] = target.command;
  return new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" });
}

const shell = (command, more) => ({
  name: "sandboxed_shell",
  arguments: { command, execution_mode: "synchronous", ...more },
});
const toolNames = async () => (await client.listTools()).tools.map((tool) => tool.name);

const client = new Client({ name: "typescript", version: "1" }, { capabilities: { roots: { listChanged: true } } });
client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: pathToFileURL(project).href }] }));
let changed;
const listChanged = new Promise((resolve) => (changed = resolve));
client.setNotificationHandler(ToolListChangedNotificationSchema, changed);
await client.connect(transport());

// List and call: the command runs in the project.
assert((await toolNames()).includes("sandboxed_shell"));
const called = await client.callTool(shell("pwd"));
assert.equal(called.isError ?? false, false);
assert(called.content[0].text.includes(project), called.content[0].text);

// Progress: lines are seen while the command runs.
const seen = [];
await client.callTool(shell("for n in 1 2 3; do echo step $n; sleep 0.5; done"), undefined, {
  onprogress: (progress) => seen.push(progress.message),
});
assert(seen.some((message) => message?.includes("step")), JSON.stringify(seen));

// Cancel: the call ends here, and the command ends there.
const abort = new AbortController();
const cancelled = client.callTool(shell("touch started; sleep 1000"), undefined, {
  signal: abort.signal,
  onprogress: () => abort.abort("enough"),
});
await assert.rejects(cancelled);
const deadline = Date.now() + 60_000;
for (;;) {
  const status = await client.callTool({ name: "status", arguments: {} });
  const rows = status.content[0].text;
  if (rows.includes("cancelled")) break;
  assert(Date.now() < deadline, rows);
  await new Promise((resolve) => setTimeout(resolve, 100));
}

// list_changed: a new tool file is a new tool.
await writeFile(
  path.join(tools, "added.json"),
  JSON.stringify({ name: "added", description: "Was added later.", command: "true" }),
);
await listChanged;
assert((await toolNames()).includes("added"));
await client.close();
