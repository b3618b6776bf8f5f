import type { NodeRow, Tone } from "../../src/dashboard/live/rows.ts";
import { useTables } from "../data/app.ts";
import { bytes, cores, count, percent, plural } from "../data/format.ts";
import { href } from "../data/location.ts";
import { FilterField, useFilter } from "../parts/filter.tsx";
import { FleetGraphs } from "../parts/graphs.tsx";
import { Badge, Bar, Head, Tile } from "../parts/pieces.tsx";
import { type Column, VirtualTable } from "../parts/virtual-table.tsx";

export function FleetPage() {
  const live = useTables();
  const nodes = live.rows("nodes");
  const { rows, text, setText } = useFilter(
    nodes,
    (node) => `${node.name} ${node.zone} ${node.state} ${node.version} ${node.cordoned ? "cordoned" : ""}`,
  );
  return (
    <>
      <Head title="Fleet" about={summary(nodes)}>
        <FilterField text={text} setText={setText} label="Filter nodes" />
      </Head>
      <Tiles />
      <FleetGraphs />
      <Zones nodes={rows} />
      <VirtualTable
        label="Nodes"
        rows={rows}
        columns={COLUMNS}
        keyOf={({ name }) => name}
        hrefOf={({ name }) => href("nodes", name)}
        empty={
          nodes.length === 0 ? "No node has joined, or this token may not see nodes." : "No node matches."
        }
      />
    </>
  );
}

function summary(nodes: readonly NodeRow[]): string {
  const versions = new Set(nodes.map(({ version }) => version).filter((version) => version !== ""));
  const zones = new Set(nodes.map(({ zone }) => zone).filter((zone) => zone !== ""));
  const parts = [plural(nodes.length, "node")];
  if (zones.size > 0) parts.push(plural(zones.size, "zone"));
  if (versions.size > 0) parts.push(`agents ${[...versions].join(", ")}`);
  return parts.join(" · ");
}

function Tiles() {
  const live = useTables();
  const nodes = live.rows("nodes");
  const pods = live.rows("pods");
  const ready = nodes.filter(({ state }) => state === "Ready").length;
  const running = pods.filter(({ tone }) => tone === "good").length;
  const bad = pods.filter(({ tone }) => tone === "bad").length;
  const waiting = pods.filter(({ node }) => node === "").length;
  const [cpu, cpuAll] = sum(nodes, ({ cpu: pair }) => pair);
  const [memory, memoryAll] = sum(nodes, ({ memory: pair }) => pair);
  return (
    <dl class="tiles">
      <Tile
        title="Nodes ready"
        value={`${count(ready)}/${count(nodes.length)}`}
        tone={ready === nodes.length ? "good" : "bad"}
      />
      <Tile title="Pods ready" value={count(running)} about={`of ${count(pods.length)}`} tone="good" />
      <Tile
        title="Pods in trouble"
        value={count(bad)}
        about={waiting > 0 ? `${count(waiting)} without a node` : ""}
        tone={bad > 0 ? "bad" : "good"}
      />
      <Tile
        title="CPU requested"
        value={`${percent(cpu, cpuAll)} %`}
        about={`${cores(cpu)} of ${cores(cpuAll)} cores`}
      />
      <Tile
        title="Memory requested"
        value={`${percent(memory, memoryAll)} %`}
        about={`${bytes(memory)} of ${bytes(memoryAll)}`}
      />
    </dl>
  );
}

function sum(
  nodes: readonly NodeRow[],
  pairOf: (node: NodeRow) => readonly [number, number],
): readonly [number, number] {
  return nodes.reduce<readonly [number, number]>(
    ([part, whole], node) => {
      const [own, all] = pairOf(node);
      return [part + own, whole + all];
    },
    [0, 0],
  );
}

/** The most squares that are shown; more would not fit on a screen. */
const MAX_SQUARES = 2_000;

/** Shows each node as a square, grouped by zone. The fuller the node, the darker the square. */
function Zones({ nodes }: { readonly nodes: readonly NodeRow[] }) {
  if (nodes.length < 2 || nodes.length > MAX_SQUARES) return null;
  const zones = Map.groupBy(nodes, ({ zone }) => zone);
  return (
    <div class="zones">
      {[...zones].map(([zone, own]) => (
        <section key={zone} aria-label={zone === "" ? "Nodes without a zone" : `Zone ${zone}`}>
          <h2>
            {zone === "" ? "No zone" : zone} <small>{plural(own.length, "node")}</small>
          </h2>
          <div class="squares">
            {own.map((node) => (
              <a
                key={node.name}
                class={`square ${nodeTone(node)}`}
                href={href("nodes", node.name)}
                tabIndex={-1}
                style={{ "--full": `${Math.min(100, fullness(node))}%` }}
                title={squareText(node)}
              >
                <span class="unseen">{squareText(node)}</span>
              </a>
            ))}
          </div>
        </section>
      ))}
    </div>
  );
}

function squareText(node: NodeRow): string {
  return `${node.name}: ${node.state}, ${fullness(node)} % full`;
}

function fullness({ cpu, memory }: NodeRow): number {
  return Math.max(percent(...cpu), percent(...memory));
}

export function nodeTone({ state, cordoned, drain }: NodeRow): Tone {
  if (state !== "Ready") return "bad";
  if (drain === "draining") return "busy";
  return cordoned ? "off" : "good";
}

function stateText({ state, cordoned, drain }: NodeRow): string {
  if (drain !== "") return `${state}, ${drain}`;
  return cordoned ? `${state}, cordoned` : state;
}

const COLUMNS: readonly Column<NodeRow>[] = [
  { title: "Node", width: "minmax(8rem, 2fr)", cell: ({ name }) => name, sort: ({ name }) => name },
  {
    title: "State",
    width: "minmax(7rem, 1.5fr)",
    cell: (node) => (
      <span title={node.message}>
        <Badge tone={nodeTone(node)}>{stateText(node)}</Badge>
      </span>
    ),
    sort: stateText,
  },
  { title: "Zone", width: "1fr", cell: ({ zone }) => zone, sort: ({ zone }) => zone, wide: true },
  {
    title: "CPU",
    width: "minmax(6rem, 1.2fr)",
    cell: ({ cpu }) => (
      <Bar part={cpu[0]} whole={cpu[1]} label="CPU requested" text={`${cores(cpu[0])} / ${cores(cpu[1])}`} />
    ),
    sort: ({ cpu }) => percent(...cpu),
  },
  {
    title: "Memory",
    width: "minmax(7rem, 1.4fr)",
    cell: ({ memory }) => (
      <Bar
        part={memory[0]}
        whole={memory[1]}
        label="Memory requested"
        text={`${bytes(memory[0])} / ${bytes(memory[1])}`}
      />
    ),
    sort: ({ memory }) => percent(...memory),
    wide: true,
  },
  {
    title: "Used",
    width: "minmax(7rem, 1.2fr)",
    cell: ({ usage }) => (usage === undefined ? "" : `${cores(usage[0])} · ${bytes(usage[1])}`),
    sort: ({ usage }) => usage?.[0] ?? 0,
    wide: true,
  },
  {
    title: "Pods",
    width: "5rem",
    cell: ({ pods, maxPods }) => (maxPods > 0 ? `${pods}/${maxPods}` : `${pods}`),
    sort: ({ pods }) => pods,
    wide: true,
  },
  {
    title: "Agent",
    width: "5rem",
    cell: ({ version }) => version,
    sort: ({ version }) => version,
    wide: true,
  },
];
