// Prints how large each room of src is, and where its names are not plain: `npm run rooms`. With `-- --names` it prints the names
// themselves, with `-- --message` the files that one message passes (message-path.ts).
// Nothing fails on these figures: people read them. What must hold is in test/tidy.test.ts.
import { basename, dirname } from 'node:path'
import { nameOf, type Node, nodeAt, nodesAt, readSources, type SourceFile } from '../test/tidy/source.ts'

interface Declared {
  readonly file: string
  readonly name: string
  readonly kind: 'function' | 'type' | 'value'
  readonly isExported: boolean
}

const irregular = new Set(
  `begun bound brought built caught chosen done drawn driven felt found given gone grown heard held hidden kept known laid left lost made meant
   met paid proven said seen sent shown sold spent spoken stood stuck sworn taken taught thought told torn understood woken won worn written`.split(
    /\s+/,
  ),
)
const noParticiples = new Set([
  'embed',
  'exceed',
  'feed',
  'heed',
  'need',
  'proceed',
  'seed',
  'speed',
  'shed',
  'succeed',
])

/** One word that says that something happened: a name for a fact, not for a function. */
function isBareParticiple(name: string): boolean {
  return irregular.has(name) || (/^[a-z]+ed$/.test(name) && !noParticiples.has(name))
}

const sources = readSources(['src'])
const declared = sources.flatMap(declaredIn)

if (process.argv.includes('--message')) await (await import('./message-path.ts')).printMessagePath()
else if (process.argv.includes('--names')) printNames()
else printRooms()

function printRooms(): void {
  const rooms = groupBy(sources, (file) => roomOf(file.path))
  console.log('room'.padEnd(22), 'files', 'lines'.padStart(7), 'median', 'longest', ' participles')
  for (const [room, files] of rooms) {
    const lengths = files.map(linesOf).toSorted((a, b) => a - b)
    const lines = lengths.reduce((sum, each) => sum + each, 0)
    const bare = declared.filter((each) => roomOf(each.file) === room && isBareFunction(each)).length
    const row = [files.length, lines, lengths[lengths.length >> 1] ?? 0, lengths.at(-1) ?? 0, bare]
    console.log(
      room.padEnd(22),
      row.map((each, index) => String(each).padStart([5, 7, 6, 7, 12][index] ?? 7)).join(' '),
    )
  }
  console.log(`all: ${sources.length} files, ${sources.reduce((sum, file) => sum + linesOf(file), 0)} lines`)
  console.log(`exported names that are declared in more than one file: ${repeatedNames().length}`)
  console.log(`file names that stand more than once: ${repeatedFiles().length}`)
  console.log(`functions named by a bare participle: ${declared.filter(isBareFunction).length}`)
}

function printNames(): void {
  for (const [name, files] of repeatedNames()) console.log(`repeated ${name}: ${files.join(' ')}`)
  for (const [name, files] of repeatedFiles()) console.log(`file ${name}: ${files.join(' ')}`)
  for (const each of declared.filter(isBareFunction)) console.log(`participle ${each.name}: ${each.file}`)
}

function repeatedNames(): readonly (readonly [string, readonly string[]])[] {
  const exported = declared.filter((each) => each.isExported)
  return groupBy(exported, (each) => each.name)
    .map(([name, all]) => [name, [...new Set(all.map((each) => each.file))]] as const)
    .filter(([, files]) => files.length > 1)
}

function repeatedFiles(): readonly (readonly [string, readonly string[]])[] {
  return groupBy(sources, (file) => basename(file.path).replace(/\.tsx?$/, ''))
    .map(([name, files]) => [name, files.map((file) => file.path)] as const)
    .filter(([name, files]) => files.length > 1 && name !== 'index')
}

function isBareFunction(each: Declared): boolean {
  return each.kind === 'function' && isBareParticiple(each.name)
}

/** What stands at the top level of a file. */
function declaredIn(file: SourceFile): readonly Declared[] {
  return nodesAt(file.program, 'body').flatMap((statement) => {
    const inner = statement.type === 'ExportNamedDeclaration' ? nodeAt(statement, 'declaration') : statement
    if (inner === null) return []
    return namesOf(inner).map((each) => ({ ...each, file: file.path, isExported: inner !== statement }))
  })
}

function namesOf(node: Node): readonly Pick<Declared, 'name' | 'kind'>[] {
  if (node.type === 'VariableDeclaration') {
    return nodesAt(node, 'declarations').flatMap((each) => {
      const name = nameOf(nodeAt(each, 'id'))
      const isFunction = nodeAt(each, 'init')?.type.includes('Function') ?? false
      return name === null ? [] : [{ name, kind: isFunction ? 'function' : 'value' } as const]
    })
  }
  const name = nameOf(nodeAt(node, 'id'))
  if (name === null) return []
  if (/FunctionDeclaration|TSDeclareFunction/.test(node.type)) return [{ name, kind: 'function' }]
  return /TSTypeAlias|TSInterface/.test(node.type) ? [{ name, kind: 'type' }] : [{ name, kind: 'value' }]
}

function roomOf(path: string): string {
  const folder = dirname(path)
  return folder === 'src'
    ? 'src (the entries)'
    : folder
        .split('/')
        .slice(1, /runtime|tools/.test(folder) ? 3 : 2)
        .join('/')
}

function linesOf(file: SourceFile): number {
  return file.text.split('\n').length - 1
}

function groupBy<T>(all: readonly T[], keyOf: (each: T) => string): (readonly [string, readonly T[]])[] {
  const groups = new Map<string, T[]>()
  for (const each of all) groups.set(keyOf(each), [...(groups.get(keyOf(each)) ?? []), each])
  return [...groups]
}
