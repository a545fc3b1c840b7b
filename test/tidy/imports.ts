// Who may import whom, which files are dead, and how tools stay apart. It does not look inside functions: code.ts does.
import { importsOf, resolveImport, type SourceFile, type Violation, violation } from './source.ts'

/**
 * The table of AGENTS.md, as data: each area and the areas it may import. Its own files are always
 * allowed. An area that is not named here has no place in the house yet.
 */
const below = ['kernel', 'options', 'tools', 'models', 'stores', 'context', 'tracing'] as const
const engine = [...below, 'runtime', 'agents', 'memory', 'graphs', 'scripts'] as const
const allowed: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  // The one check of what a host hands over: every area has options of its own.
  options: ['kernel'],
  tools: ['kernel', 'options'],
  models: ['kernel', 'options'],
  stores: ['kernel', 'options'],
  context: ['kernel', 'options'],
  tracing: ['kernel', 'options'],
  // The machine's clock, which only the stores and the runtime may touch.
  chaos: ['kernel', 'options', 'stores'],
  runtime: ['kernel', 'options', 'tools', 'models', 'stores', 'context'],
  agents: ['kernel', 'runtime'],
  memory: ['kernel', 'options', 'tools', 'models', 'stores', 'runtime'],
  // What a node does is defined like any other tool.
  graphs: ['kernel', 'options', 'runtime', 'tools'],
  scripts: ['kernel', 'runtime'],
  version: [],
  // The verbs of one session: half of the harness, in a file of its own.
  'session-handle': engine,
  harness: [...engine, 'session-handle', 'version'],
  // Recorded sessions, an entry of its own: public names only.
  replay: engine,
  // Public names only: it re-exports, so it may see everything that has a public name.
  index: [...engine, 'harness', 'session-handle', 'version', 'triage', 'evals', 'server', 'server/wire'],
  // What anyone outside could import (the public names and the pure kernel), and never a store or a driver.
  triage: ['harness', 'index', 'kernel'],
  evals: ['harness', 'index', 'kernel'],
  // It uses what the package's entries offer, each when a command needs it.
  // biome-ignore format: a list
  cli: ['harness', 'index', 'kernel', 'options', 'tools', 'stores', 'tracing', 'replay', 'memory', 'graphs', 'version'],
  server: ['harness', 'kernel', 'server/wire'],
  'server/wire': ['kernel'],
  web: ['kernel', 'server/wire'],
  // The tools frame too: what the simulator's agent does is defined like any other tool.
  sim: ['kernel', 'runtime', 'stores', 'tools'],
}

/** The files every tool may use. All others in src/tools are tools, and tools do not import each other. */
const toolFrame = new Set([
  'tool',
  'admit',
  'repair',
  'run',
  'output',
  'policy',
  'policy-file',
  'policy-paths',
  'likeness',
  'lookalike',
  'pattern',
  'pattern-command',
  'risk-words',
  'risk-wrappers',
  'invalid',
  'reading',
  'shape',
  'truncated',
  'schema',
  'paths',
  'protected',
  'own-places',
  'aftermath',
  'surroundings',
  'standard',
  'disk',
  'diff',
  'bound',
  'plain',
  'ripgrep',
  'sandbox',
  'sandbox-check',
  'seccomp',
  'spawn',
  'capture',
  'json-schema',
  'budget',
  'undo',
  'address',
  'invisible',
  'confined',
  'risk',
  'isolate',
  'injected',
  'canonical',
])
/** The files that make several tools at once, and nothing else. Only they may import tools. */
const toolSets = new Set(['files', 'builtin', 'index'])

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
      if (target === null || areaOf(file.path) !== 'tools' || areaOf(target) !== 'tools') return []
      if (toolSets.has(stemIn('src/tools/', file.path))) return []
      // `jsonl-filter.ts` is a part of the tool `jsonl.ts`: the parts of one tool may import each other.
      const [tool, part] = [file.path, target].map((path) => stemIn('src/tools/', path))
      if (part?.includes('-') && part.split('-')[0] === tool?.split('-')[0]) return []
      return toolFrame.has(stemIn('src/tools/', target)) ? [] : [violation(file, offset, `a tool imports ${target}`)]
    }),
  )
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

function stemIn(folder: string, path: string): string {
  return path.slice(folder.length).replace(/\.tsx?$/, '')
}
