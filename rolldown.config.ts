// The published JavaScript: one file per entry and shared chunks, because loading an ES module costs about a millisecond
// of CPU each, and `import 'terret'` must stay cheap. Types come from tsc (tsconfig.build.json).
// Small packages that are loaded lazily are bundled, with their licenses; those that bring binaries or data are dependencies.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { defineConfig, type Plugin } from 'rolldown'
import type * as Agents from './src/agents/index.ts'

// biome-ignore format: a list
const bundled = [
  'ajv', 'ajv-formats', 'fast-deep-equal', 'fast-uri', 'json-schema-traverse', 'require-from-string',
  'yaml', 'entities', 'web-tree-sitter', '@vscode/tree-sitter-wasm', 'zod', '@agentclientprotocol/sdk',
  '@modelcontextprotocol/server', '@modelcontextprotocol/core', 'croner', 'marked',
  'quickjs-emscripten-core', '@jitl/quickjs-ffi-types', '@jitl/quickjs-wasmfile-release-sync',
]
const wasm = [
  'web-tree-sitter/web-tree-sitter.wasm',
  '@vscode/tree-sitter-wasm/wasm/tree-sitter-bash.wasm',
  '@jitl/quickjs-wasmfile-release-sync/dist/emscripten-module.wasm',
]

/** What `terret demo` writes its report from. */
const DOCUMENTS = 'src/cli/demo/documents'

const assets: Plugin = {
  name: 'assets',
  generateBundle() {
    for (const path of wasm) {
      const source = readFileSync(`node_modules/${path}`)
      this.emitFile({ type: 'asset', fileName: `wasm/${path.split('/').at(-1)}`, source })
    }
    for (const name of readdirSync('src/agents/archetypes')) {
      const source = readFileSync(`src/agents/archetypes/${name}`)
      this.emitFile({ type: 'asset', fileName: `agents/archetypes/${name}`, source })
    }
    const documents = readdirSync(DOCUMENTS, { recursive: true, encoding: 'utf8', withFileTypes: true })
    for (const { parentPath, name } of documents.filter((each) => each.isFile())) {
      const path = join(parentPath, name)
      const fileName = path
        .split(sep)
        .join('/')
        .replace(/^src\//, '')
      this.emitFile({ type: 'asset', fileName, source: readFileSync(path) })
    }
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY-LICENSES.txt', source: bundled.map(licenseOf).join('\n\n') })
  },
}

/**
 * Two packages name their WebAssembly file by an address beside the module, where it is not. We give them the bytes, so they never read
 * that address, but a bundler of a user (Next.js) follows it, and ends with an error about a file that nobody needs.
 */
const noWasmAddress: Plugin = {
  name: 'no-wasm-address',
  transform(code, id) {
    const [file, address] = id.includes('/web-tree-sitter/')
      ? ['web-tree-sitter.wasm', 'new URL("web-tree-sitter.wasm", import.meta.url).href']
      : id.endsWith('/quickjs-wasmfile-release-sync/dist/emscripten-module.mjs')
        ? ['emscripten-module.wasm', '(new URL("emscripten-module.wasm",import.meta.url)).href']
        : []
    if (file === undefined || address === undefined) return null
    if (!code.includes(address)) throw new Error(`${id} no longer has ${address}`)
    return { code: code.replace(address, JSON.stringify(file)), map: null }
  },
}

/** The agents that ship, as the bundle itself reads them from their files: a start then reads one JSON, and needs no YAML. */
const archetypes: Plugin = {
  name: 'archetypes',
  async writeBundle() {
    const entry: unknown = await import(pathToFileURL('dist/agents/index.js').href)
    const { definitions, troubles } = await (entry as Pick<typeof Agents, 'loadAgents'>).loadAgents()
    if (troubles.length > 0) throw new Error(troubles.join('\n'))
    const named = definitions.map((each) => ({ ...each, file: basename(each.file) }))
    writeFileSync('dist/agents/archetypes.json', JSON.stringify(named))
  },
}

/** Everything that `import 'terret'` runs, and nothing that is loaded later. */
const atOnce = new Set<string>()

const reachable: Plugin = {
  name: 'reachable',
  buildEnd() {
    const open = [...this.getModuleIds()].filter((id) => id.endsWith('/src/index.ts'))
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (atOnce.has(id)) continue
      atOnce.add(id)
      open.push(...(this.getModuleInfo(id)?.importedIds ?? []))
    }
  },
}

function isViewAtOnce(id: string): boolean {
  return (
    /\/src\/view\/(untrusted-json|lookalike|shown-text)\./.test(id) || (atOnce.has(id) && id.includes('/src/view/'))
  )
}

/** Left alone, the bundler makes a chunk of every set of files that two entries share, and there would be twenty to load. */
const groups = [
  // Pure code: the kernel, and what shows sessions. `terret/kernel` and `terret/view` run in browsers, so nothing here needs Node. Every
  // command of the command line loads it: `terret --help` must not load the rest.
  { name: 'kernel', test: (id: string) => /\/src\/(kernel\/|options\.)/.test(id) || isViewAtOnce(id) },
  { name: 'stores', test: (id: string) => atOnce.has(id) && id.includes('/src/stores/') },
  // What an open file needs: a harness in memory does without. A group takes along what its files import, so this one comes before those
  // that share with it.
  { name: 'sqlite', test: /\/src\/stores\/(sqlite\/(?!sqlite-move\.|backup\.|file-lock\.)|plan\/checksum\.)/ },
  // Only for `terret store`.
  { name: 'move', test: /\/src\/stores\/(move|sqlite)\/(move-store|row-digest|sqlite-move)\./ },
  { name: 'postgres-move', test: /\/src\/stores\/postgres\/(postgres-move|held-transaction|postgres-move-writer)\./ },
  { name: 'postgres', test: /\/src\/stores\/(postgres\/|plan\/plan-needs\.)/ },
  { name: 'core', test: (id: string) => atOnce.has(id) },
  // What the first request over HTTP loads. Each file more costs about a millisecond in every process that asks a model.
  { name: 'chat', test: /\/src\/models\/protocols\/chat\// },
  { name: 'http', test: /\/src\/models\/(http|protocols)\/[a-z-]+\.ts/ },
]

/**
 * To import a built-in module by name runs every getter it has: that of `node:util` and that of `node:fs` load twenty other modules. A
 * function of Node's is therefore looked up when it is first called. A constant, a class, and a function that carries properties
 * (`promisify` reads one of `execFile`) are taken when the chunk is loaded, as an import would.
 */
const builtins: Plugin = {
  name: 'builtins',
  renderChunk(code) {
    const lines: string[] = []
    const rest = code.replace(
      /^import \{ ([^}]+) \} from "(node:[a-z0-9_/]+)";$/gm,
      (_all, names: string, from: string) => {
        const all = process.getBuiltinModule(from) as Readonly<Record<string, unknown>>
        for (const each of names.split(', ')) {
          const [name = '', own = name] = each.split(' as ')
          const found = `process.getBuiltinModule("${from}").${name}`
          const first = `let ${own} = (...given) => (${own} = ${found})(...given);`
          lines.push(isPlainFunction(name, all[name]) ? first : `const ${own} = ${found};`)
        }
        return ''
      },
    )
    if (lines.length === 0) return null
    const from = rest.lastIndexOf('\n', rest.search(/^(?!import |#!|\s*$|\/\/)/m)) + 1
    return `${rest.slice(0, from)}${lines.join('\n')}\n${rest.slice(from)}`
  },
}

/** `tmpdir` and its like are also texts by the last of these. No code here uses them so. */
const PLAIN_KEYS: ReadonlySet<string | symbol> = new Set(['name', 'length', 'prototype', Symbol.toPrimitive])

function isPlainFunction(name: string, value: unknown): boolean {
  if (typeof value !== 'function' || /^[A-Z]/.test(name)) return false
  return Reflect.ownKeys(value).every((key) => PLAIN_KEYS.has(key))
}

function licenseOf(name: string): string {
  for (const file of ['LICENSE', 'license']) {
    try {
      return `== ${name}\n\n${readFileSync(`node_modules/${name}/${file}`, 'utf8').trim()}\n`
    } catch {}
  }
  throw new Error(`${name} is bundled and has no license file`)
}

export default defineConfig({
  input: {
    index: 'src/index.ts',
    'kernel/index': 'src/kernel/index.ts',
    'stores/index': 'src/stores/index.ts',
    'stores/sqlite/sqlite': 'src/stores/sqlite/sqlite.ts',
    'stores/postgres/postgres': 'src/stores/postgres/postgres.ts',
    'tools/index': 'src/tools/index.ts',
    'testing/index': 'src/testing/index.ts',
    'tracing/index': 'src/tracing/index.ts',
    replay: 'src/replay.ts',
    'graphs/index': 'src/graphs/index.ts',
    'evals/index': 'src/evals/index.ts',
    'triggers/index': 'src/triggers/index.ts',
    'boards/index': 'src/boards/index.ts',
    'cron/index': 'src/cron/index.ts',
    'scripts/index': 'src/scripts/index.ts',
    // What a thread of a script loads.
    'scripts/quickjs': 'src/scripts/quickjs.ts',
    'consumers/index': 'src/consumers/index.ts',
    'memory/index': 'src/memory/index.ts',
    'agents/index': 'src/agents/index.ts',
    'ui/index': 'src/ui/index.ts',
    worker: 'src/worker.ts',
    'client/index': 'src/client/index.ts',
    'server/index': 'src/server/index.ts',
    'view/index': 'src/view/index.ts',
    'mcp/index': 'src/mcp/index.ts',
    'restate/index': 'src/restate/index.ts',
    'models/aisdk/aisdk': 'src/models/aisdk/aisdk.ts',
    'cli/main': 'src/cli/main.ts',
  },
  platform: 'node',
  external: [
    /^node:/,
    /^@photostructure\/sqlite/,
    /^pg$/,
    /^@vscode\/ripgrep/,
    /^@modelcontextprotocol\/client/,
    /^@restatedev\/restate-sdk/,
    /^@pydantic\/genai-prices/,
  ],
  plugins: [noWasmAddress, assets, reachable, builtins, archetypes],
  // web-tree-sitter evaluates what its own grammars bring along.
  checks: { eval: false },
  output: {
    dir: 'dist',
    format: 'esm',
    chunkFileNames: 'chunks/[name]-[hash].js',
    codeSplitting: { groups },
    // Names and lines stay, so that an error shows where it was thrown. What the comments say stands in the types. One letter that is
    // not ASCII makes V8 hold and read the whole file at two bytes a letter.
    comments: { jsdoc: false },
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
  },
})
