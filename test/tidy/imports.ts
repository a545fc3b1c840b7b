// Which areas may import which, which files are dead, and how tools stay apart. It does not look inside functions: code.ts does.
import { importsOf, resolveImport, type SourceFile, type Violation, violation } from './source.ts'

/**
 * The table of AGENTS.md, as data: each area and the areas it may import. Its own files are always
 * allowed. An area that is not named here has no place in the house yet.
 */
const below = ['kernel', 'ports', 'options', 'view', 'tools', 'models', 'stores', 'context', 'tracing', 'live'] as const
/** What drives a session, in four rooms that know each other: the loop, what it has done, what joins its commits, the verbs. */
const runtime = ['engine', 'effects', 'riders', 'sessions'] as const
const engine = [...below, ...runtime, 'archive', 'agents', 'memory', 'graphs', 'workflows', 'boards'] as const
const allowed: Readonly<Record<string, readonly string[]>> = {
  // Its public list names the ports too: types, which import nothing but its own.
  kernel: ['ports'],
  // The doors to stores, models and the machine, as types only.
  ports: ['kernel'],
  // The one check of what a host hands over: every area has options of its own.
  options: ['kernel', 'ports'],
  // Pure projections, and texts as people see them: usable by everything that shows a session, also by a page in a browser.
  view: ['kernel', 'ports'],
  live: ['kernel', 'ports'],
  tools: ['kernel', 'ports', 'options', 'view'],
  models: ['kernel', 'ports', 'options', 'view'],
  stores: ['kernel', 'ports', 'options', 'view'],
  // What shortens a text reads it as tools do, and what gives it back is a tool.
  context: ['kernel', 'ports', 'options', 'view', 'tools'],
  tracing: ['kernel', 'ports', 'options', 'view'],
  // The machine's clock, which only the stores and the runtime may touch.
  testing: ['kernel', 'ports', 'options', 'view', 'stores'],
  engine: [...below, ...runtime],
  effects: [...below, ...runtime],
  riders: [...below, ...runtime],
  sessions: [...below, ...runtime, 'archive'],
  archive: [...below, ...runtime],
  agents: ['kernel', 'ports', 'options', 'view', 'tools', 'models', ...runtime],
  memory: ['kernel', 'ports', 'options', 'view', 'tools', 'models', 'stores', ...runtime],
  // What a node does is defined like any other tool.
  graphs: ['kernel', 'ports', 'options', 'view', 'tools', ...runtime, 'workflows'],
  workflows: ['kernel', 'ports', 'options', 'view', 'tools', 'sessions', 'graphs'],
  // Folds of logs, their tools, and a planner that is handed over like a graph.
  boards: ['kernel', 'ports', 'options', 'view', 'tools', ...runtime, 'graphs'],
  // Pages of a session, from its stream: the verbs as types, and never a store or a driver.
  ui: ['kernel', 'ports', 'options', 'view', 'models', 'sessions'],
  // Editors, from the same telling of a session, and the boards that they show as plans.
  acp: ['kernel', 'ports', 'options', 'view', 'sessions', 'boards', 'ui'],
  // The verbs of sessions as tools for other agents, on standard input and output and in a server.
  mcp: ['kernel', 'ports', 'options', 'view', 'tools', 'sessions', 'version'],
  scripts: ['kernel', 'ports', ...runtime],
  version: [],
  // The verbs of one session: half of the harness, in a file of its own.
  session: engine,
  harness: [...engine, 'session', 'version'],
  // Recorded sessions, an entry of its own: public names only.
  replay: engine,
  // Public names only: it re-exports, so it may see everything that has a public name.
  index: [...engine, 'harness', 'session', 'version', 'triage', 'evals', 'server', 'server/wire'],
  // What anyone outside could import (the public names and the pure kernel), and never a store or a driver.
  triage: ['harness', 'index', 'kernel', 'ports'],
  evals: ['harness', 'index', 'kernel', 'ports'],
  // It uses what the package's entries offer, each when a command needs it.
  cli: [
    'harness',
    'index',
    'kernel',
    'ports',
    'options',
    'view',
    'tools',
    'stores',
    'context',
    'tracing',
    'replay',
    'memory',
    'agents',
    'graphs',
    'boards',
    'acp',
    'mcp',
    'version',
    'server',
    'server/wire',
    'client',
  ],
  // A worker that another engine wakes: the harness as a type, and what the due loop is made of.
  restate: ['kernel', 'ports', 'options', 'stores', 'engine', 'sessions', 'harness'],
  // Recorded sessions go in and out as files. The schema of events is a part of the document that the server gives.
  server: ['harness', 'archive', 'kernel', 'ports', 'view', 'replay', 'mcp', 'server/wire', 'version'],
  'server/wire': ['kernel', 'ports', 'view'],
  // The verbs over HTTP: in a browser too, so nothing that touches a machine.
  client: ['kernel', 'ports', 'server/wire'],
  web: ['kernel', 'ports', 'view', 'server/wire'],
  // The tools frame too: what the simulator's agent does is defined like any other tool.
  sim: [
    'kernel',
    'ports',
    ...runtime,
    'archive',
    'live',
    'stores',
    'tools',
    'view',
    'context',
    'graphs',
    'boards',
    'workflows',
  ],
}

/** The rooms of src/tools, and the rooms each may import. What stands beside them makes tools of several rooms. */
const toolRooms: Readonly<Record<string, readonly string[]>> = {
  core: ['repair', 'policy', 'shell'],
  repair: ['core'],
  policy: ['core', 'shell'],
  files: ['core', 'repair', 'policy'],
  shell: ['core', 'files', 'policy'],
  jsonl: ['core', 'files', 'repair'],
  mcp: ['core', 'shell'],
  web: ['core'],
  skills: ['core', 'files', 'shell'],
  people: ['core'],
  agents: ['core', 'files', 'repair'],
  worktrees: ['core', 'files'],
}
/** The tools of a room that has several. They do not import each other; the file that makes them together does. */
const tools = new Set(['read', 'write', 'edit', 'list', 'glob', 'search'].map((name) => `src/tools/files/${name}.ts`))
const toolSets = new Set(['src/tools/files/files.ts'])

export function importDirection(files: readonly SourceFile[]): readonly Violation[] {
  return files.flatMap((file) => {
    const area = areaOf(file.path)
    if (area === null) return []
    const may = allowed[area]
    if (may === undefined) return [violation(file, 0, `is in "${area}", which has no line in the import table`)]
    return importsOf(file).flatMap(({ specifier, offset }) => {
      const target = resolveImport(file.path, specifier)
      if (target === null) return []
      const other = areaOf(target) ?? target
      return other === area || may.includes(other) ? [] : [violation(file, offset, `${area} imports ${other}`)]
    })
  })
}

export function sidewaysTools(files: readonly SourceFile[]): readonly Violation[] {
  return files.flatMap((file) =>
    importsOf(file).flatMap(({ specifier, offset }) => {
      const target = resolveImport(file.path, specifier)
      const [room, other] = [toolRoomOf(file.path), target === null ? null : toolRoomOf(target)]
      if (target === null || room === null || other === null) return []
      if (room !== other && !toolRooms[room]?.includes(other))
        return [violation(file, offset, `tools/${room} imports tools/${other}`)]
      const sideways = tools.has(target) && tools.has(file.path) && !toolSets.has(file.path)
      return sideways ? [violation(file, offset, `a tool imports ${target}`)] : []
    }),
  )
}

/** Null for what is no tool, and for what stands beside the rooms. */
function toolRoomOf(path: string): string | null {
  return /^src\/tools\/([a-z]+)\//.exec(path)?.[1] ?? null
}

/** Every file of src that no entry reaches, and every entry that is not there. */
export function deadFiles(files: readonly SourceFile[], entries: readonly string[]): readonly Violation[] {
  const known = new Map(files.map((file) => [file.path, file]))
  const missing = entries.filter((entry) => !known.has(entry)).map((entry) => `${entry}:1 is an entry and is not there`)
  const reached = new Set<string>()
  const open = entries.filter((entry) => known.has(entry))
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const file = known.get(path)
    if (file === undefined || reached.has(path)) continue
    reached.add(path)
    for (const { specifier } of importsOf(file)) {
      const target = resolveImport(path, specifier)
      if (target !== null) open.push(target)
    }
  }
  const dead = files.filter((file) => file.path.startsWith('src/') && !reached.has(file.path))
  return [...missing, ...dead.map((file) => violation(file, 0, 'is reached by no entry of package.json'))]
}

/** The source files behind the `exports` and `bin` of package.json. */
export function entriesOf(manifest: { readonly exports?: unknown; readonly bin?: unknown }): readonly string[] {
  const built = stringsIn([manifest.exports, manifest.bin]).filter((path) => /^(\.\/)?dist\/.*\.js$/.test(path))
  return [...new Set(built)].map((path) => path.replace(/^(\.\/)?dist\//, 'src/').replace(/\.js$/, '.ts'))
}

function stringsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

/** `src/kernel/fold.ts` is in kernel, `src/harness.ts` in harness. Tests, benchmarks and examples may import anything. */
function areaOf(path: string): string | null {
  if (path.startsWith('src/server/wire')) return 'server/wire'
  const [top = '', second = ''] = path.split('/')
  if (top === 'src') return second.replace(/\.tsx?$/, '')
  return top === 'web' || top === 'sim' ? top : null
}
