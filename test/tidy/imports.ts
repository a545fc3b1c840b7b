// Which areas may import which, which files are dead, and how tools stay apart. It does not look inside functions: code.ts does.
import { importsOf, resolveImport, type SourceFile, type Violation, violation } from './source.ts'

/**
 * The table of AGENTS.md, as data: each area and the areas it may import. Its own files are always
 * allowed. An area that is not named here has no place in the house yet.
 */
const below = ['kernel', 'ports', 'options', 'view', 'tools', 'models', 'stores', 'context', 'tracing', 'live'] as const
/** What drives a session, and the verbs that people and programs use on it. */
const driving = ['runtime', 'sessions'] as const
const underHarness = [
  ...below,
  ...driving,
  'archive',
  'agents',
  'memory',
  'graphs',
  'workflows',
  'boards',
  'queues',
  'consumers',
  'outcomes',
  'triggers',
] as const
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
  // The machine's clock, which only the stores and the runtime may touch. An agent under test is made by its public names.
  testing: ['kernel', 'ports', 'options', 'view', 'stores', 'index'],
  // The verbs stand on it: it never asks them back.
  runtime: below,
  sessions: [...below, ...driving, 'archive'],
  archive: [...below, ...driving],
  agents: ['kernel', 'ports', 'options', 'view', 'tools', 'models', ...driving],
  memory: ['kernel', 'ports', 'options', 'view', 'tools', 'models', 'stores', ...driving],
  // What a node does is defined like any other tool.
  graphs: ['kernel', 'ports', 'options', 'view', 'tools', ...driving, 'workflows'],
  workflows: ['kernel', 'ports', 'options', 'view', 'tools', 'sessions', 'graphs'],
  // Events from outside: a graph for each source, whose prompts escape foreign text as those of workflows do.
  triggers: ['kernel', 'ports', 'options', 'view', 'tools', 'models', 'stores', ...driving, 'graphs', 'workflows'],
  // Programs of models: a planner that is handed over like a graph, and its tool.
  scripts: ['kernel', 'ports', 'options', 'view', 'tools', 'stores', ...driving, 'graphs'],
  // Folds of logs, their tools, and a planner that is handed over like a graph.
  boards: ['kernel', 'ports', 'options', 'view', 'tools', ...driving, 'graphs'],
  // A planner that is handed over like a graph, and verbs on those of sessions.
  cron: ['kernel', 'ports', 'options', 'view', 'tools', ...driving, 'graphs'],
  // Sessions that work through their messages, and what is done with settled runs.
  queues: ['kernel', 'ports', 'options', 'view', 'tools', ...driving],
  consumers: ['kernel', 'ports', 'options', 'view', 'tools', ...driving, 'queues'],
  // A consumer that continues what a session pursues, and the graders' agents. Prompts escape texts as those of workflows.
  outcomes: ['kernel', 'ports', 'options', 'view', 'tools', 'models', 'stores', ...driving, 'consumers', 'workflows'],
  // Pages of a session, from its stream: the verbs as types, and never a store or a driver.
  ui: ['kernel', 'ports', 'options', 'view', 'models', 'sessions'],
  // Editors, from the same telling of a session, and the boards that they show as plans.
  acp: ['kernel', 'ports', 'options', 'view', 'sessions', 'boards', 'ui'],
  // The verbs of sessions as tools for other agents, on standard input and output and in a server.
  mcp: ['kernel', 'ports', 'options', 'view', 'tools', 'sessions', 'version'],
  version: [],
  // The verbs of one session: half of the harness, in a file of its own.
  session: underHarness,
  harness: [...underHarness, 'session', 'version'],
  // A recorded session that an altered harness lives again.
  whatif: [...underHarness, 'harness'],
  // Recorded sessions, an entry of its own: public names only.
  replay: [...underHarness, 'whatif'],
  // Suites over sessions: a host of harnesses, which reads their logs again.
  evals: [...underHarness, 'harness'],
  // Public names only: it re-exports, so it may see everything that has a public name.
  index: [...underHarness, 'harness', 'session', 'version', 'server', 'server/wire'],
  // It uses what the package's entries offer, each when a command needs it.
  cli: [
    'harness',
    'worker',
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
    'workflows',
    'boards',
    'cron',
    'scripts',
    'consumers',
    'triggers',
    'testing',
    'evals',
    'acp',
    'mcp',
    'version',
    'server',
    'server/wire',
    'client',
  ],
  // The loop over due sessions, for hosts of several harnesses.
  worker: ['ports', 'runtime', 'sessions', 'harness'],
  // A worker that another engine wakes: the harness as a type, and what the due loop is made of.
  restate: ['kernel', 'ports', 'options', 'stores', 'runtime', 'sessions', 'harness', 'worker'],
  // Recorded sessions go in and out as files. The schema of events is a part of the document that the server gives.
  server: [
    'harness',
    'archive',
    'cron',
    'queues',
    'triggers',
    'evals',
    'kernel',
    'ports',
    'options',
    'view',
    'replay',
    'mcp',
    'server/wire',
    'version',
  ],
  'server/wire': ['kernel', 'ports', 'view'],
  // The verbs over HTTP, with readers that a harness uses too. In a browser too, so `outsideBrowser` checks what is reached.
  client: ['kernel', 'ports', 'view', 'live', 'stores', 'context', ...driving, 'index', 'server/wire'],
  web: ['kernel', 'ports', 'view', 'server/wire'],
  // The tools frame too: what the simulator's agent does is defined like any other tool.
  sim: [
    'kernel',
    'ports',
    ...driving,
    'archive',
    'live',
    'stores',
    'harness',
    'tools',
    'triggers',
    'view',
    'context',
    'graphs',
    'boards',
    'cron',
    'workflows',
    'queues',
    'consumers',
    'scripts',
    'outcomes',
  ],
}

/**
 * The rooms of src/runtime, and the rooms each may import: loop → commit → turn → hooks, money → state → guard, redact.
 * An attempt is driven in the first and knows all the others; the last two know nothing of a session.
 */
const underTurn = ['hooks', 'money', 'state', 'guard', 'redact'] as const
const runtimeRooms: Readonly<Record<string, readonly string[]>> = {
  loop: ['commit', 'turn', ...underTurn],
  commit: ['turn', ...underTurn],
  turn: underTurn,
  hooks: ['state', 'guard', 'redact'],
  money: ['state', 'guard', 'redact'],
  state: ['guard', 'redact'],
  guard: [],
  redact: [],
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
  agents: ['core', 'files', 'repair'],
  worktrees: ['core', 'files'],
}
/** The tools of a room that has several. They do not import each other; the file that makes them together does. */
const tools = new Set(
  ['read', 'write', 'edit', 'list', 'glob', 'search'].map((name) => `src/tools/files/${name}-tool.ts`),
)
const toolSets = new Set(['src/tools/files/file-tools.ts'])

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

/** An import from a room of the runtime to one above it, and a file that is in no room of the table. */
export function upwardRuntime(files: readonly SourceFile[]): readonly Violation[] {
  return files.flatMap((file) => {
    const room = runtimeRoomOf(file.path)
    if (room === null) return []
    const may = runtimeRooms[room]
    if (may === undefined) return [violation(file, 0, 'is in no room of the runtime that the table names')]
    return importsOf(file).flatMap(({ specifier, offset }) => {
      const other = runtimeRoomOf(resolveImport(file.path, specifier) ?? '')
      const isAllowed = other === null || other === room || may.includes(other)
      return isAllowed ? [] : [violation(file, offset, `runtime/${room} imports runtime/${other}`)]
    })
  })
}

/** Null for what is not in the runtime; the empty text for a file beside its rooms. */
function runtimeRoomOf(path: string): string | null {
  return /^src\/runtime\/(?:([a-z]+)\/)?/.exec(path)?.map((room) => room ?? '')[1] ?? null
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
  const known = new Set(files.map(({ path }) => path))
  const missing = entries.filter((entry) => !known.has(entry)).map((entry) => `${entry}:1 is an entry and is not there`)
  const reached = reachedFrom(files, entries)
  const dead = files.filter((file) => file.path.startsWith('src/') && !reached.has(file.path))
  return [...missing, ...dead.map((file) => violation(file, 0, 'is reached by no entry of package.json'))]
}

/** Every file that these entries load, at once or later. */
function reachedFrom(files: readonly SourceFile[], entries: readonly string[]): ReadonlySet<string> {
  const known = new Map(files.map((file) => [file.path, file]))
  const reached = new Set<string>()
  const open = [...entries]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const file = known.get(path)
    if (file === undefined || reached.has(path)) continue
    reached.add(path)
    for (const { specifier } of importsOf(file)) {
      const target = resolveImport(path, specifier)
      if (target !== null) open.push(target)
    }
  }
  return reached
}

/** What a host imports as `terret` runs agents. It brings no demonstration, no command and no equipment for tests. */
export function notLibrary(files: readonly SourceFile[]): readonly string[] {
  return [...reachedFrom(files, ['src/index.ts'])].filter((path) => /^src\/(cli|testing|web)\//.test(path))
}

/** A file that is alone in a folder of src belongs into the folder above. */
export function lonelyFiles(paths: readonly string[]): readonly Violation[] {
  const isAlone = (path: string): boolean => {
    const folder = path.slice(0, path.lastIndexOf('/') + 1)
    return paths.filter((other) => other.startsWith(folder)).length === 1
  }
  return paths.filter(isAlone).map((path) => `${path}:1 is alone in its folder`)
}

/** Every import of Node or of a package that running this entry reaches. A browser has neither. */
export function outsideBrowser(files: readonly SourceFile[], entry: string): readonly Violation[] {
  const known = new Map(files.map((file) => [file.path, file]))
  const reached = new Set<string>()
  const found: Violation[] = []
  const open = [entry]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const file = known.get(path)
    if (file === undefined || reached.has(path)) continue
    reached.add(path)
    for (const { specifier, offset, isType } of importsOf(file)) {
      if (isType) continue
      const target = resolveImport(path, specifier)
      if (target !== null) open.push(target)
      else found.push(violation(file, offset, `imports ${specifier}, which a browser does not have`))
    }
  }
  return found
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
