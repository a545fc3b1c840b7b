// What a release weighs and what it exports, as Markdown, read from dist/ and from what npm would pack. Two reports are compared by
// `diff`: names that are gone break somebody. It judges nothing: budgets are tests (type-budget.ts, test/bench.long.test.ts).
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { parseSync } from 'oxc-parser'
import { measureTypes, ownOf, slopeOf } from './type-budget.ts'

type Manifest = {
  readonly version: string
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
}

/** An entry of the package: what its import loads at once, and the names that it gives. */
export type EntryReport = {
  readonly entry: string
  readonly files: number
  readonly bytes: number
  readonly names: readonly string[]
}

type Packed = { readonly size: number; readonly unpackedSize: number; readonly entryCount: number }

/** `root` is the repository, built. */
export async function packageReport(root: string): Promise<string> {
  const { version } = readManifest(root)
  const packed = readPacked(root)
  const entries = reportEntries(root)
  const types = await measureTypes(root)
  const rows = entries.map(({ entry, files, bytes, names }) => {
    return `| \`${entry}\` | ${kilobytes(bytes)} | ${files} | ${names.length} |`
  })
  const lists = entries.map(({ entry, names }) => `${entry}\n${names.map((name) => `  ${name}`).join('\n')}`)
  return `## Terret ${version}: size and names

- packed ${kilobytes(packed.size)}, unpacked ${kilobytes(packed.unpackedSize)}, ${packed.entryCount} files
- a tool costs the compiler ${slopeOf(types.terret).whole} instantiations, ${ownOf(types)} of them beside its schema

| entry | JavaScript that its import loads | files | names |
|---|---|---|---|
${rows.join('\n')}

\`\`\`
${lists.join('\n')}
\`\`\`
`
}

export function reportEntries(root: string): readonly EntryReport[] {
  return Object.entries(readManifest(root).exports).flatMap(([path, files]) => {
    if (typeof files === 'string') return []
    const loaded = [...loadedBy(root, posix.normalize(files.default))]
    const bytes = loaded.reduce((sum, file) => sum + statSync(join(root, file)).size, 0)
    const names = [...namesIn(root, posix.normalize(files.types))].toSorted()
    return [{ entry: posix.join('terret', path), files: loaded.length, bytes, names }]
  })
}

/** The file and all that it imports at once, however far: not what it loads when it is used. */
function loadedBy(root: string, file: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(file)) return found
  found.add(file)
  const { module } = parseSync(file, readFileSync(join(root, file), 'utf8'))
  const imported = module.staticImports.map(({ moduleRequest }) => moduleRequest.value)
  const handedOn = module.staticExports.flatMap(({ entries }) => entries.map((each) => each.moduleRequest?.value ?? ''))
  for (const path of [...imported, ...handedOn]) if (path.startsWith('.')) loadedBy(root, beside(file, path), found)
  return found
}

/** The names that a file of declarations exports. One of a type is marked. */
function namesIn(root: string, file: string): ReadonlySet<string> {
  const { module } = parseSync(file, readFileSync(join(root, file), 'utf8'))
  const names = new Set<string>()
  for (const { exportName, isType, importName, moduleRequest } of module.staticExports.flatMap(
    ({ entries }) => entries,
  )) {
    const all = importName.kind === 'AllButDefault' && exportName.name === null && moduleRequest
    if (all) for (const name of namesIn(root, declarationsOf(beside(file, all.value)))) names.add(name)
    // A declaration counts as a type for the parser, whatever it declares: only what is exported by a list tells.
    else if (exportName.name !== null) names.add(isType && moduleRequest ? `type ${exportName.name}` : exportName.name)
  }
  return names
}

/** Declarations import the source that they were made of. */
function declarationsOf(path: string): string {
  return path.replace(/(?:\.d)?\.[jt]s$/, '.d.ts')
}

function beside(file: string, path: string): string {
  return posix.join(dirname(file), path)
}

function readManifest(root: string): Manifest {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
}

/** npm prints a list, or an object by the names of packages: of either the one value. */
function readPacked(root: string): Packed {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts']
  const said = execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  const [packed] = Object.values(JSON.parse(said) as Readonly<Record<string, Packed>>)
  if (packed === undefined) throw new Error('npm packs nothing here.')
  return packed
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toLocaleString('en', { maximumFractionDigits: 0 })} kB`
}
