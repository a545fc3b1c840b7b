// Reads the repository's files and parses its TypeScript. It knows no rule: those are in the files next to it.
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { parseSync } from 'oxc-parser'

export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

export interface TextFile {
  /** Relative to the repository, with forward slashes. */
  readonly path: string
  readonly text: string
}

export interface SourceFile extends TextFile {
  readonly program: Node
  readonly comments: readonly { readonly value: string; readonly start: number }[]
  readonly errors: readonly string[]
}

/** One broken rule, as `path:line what is wrong`. No violations means the rule holds. */
export type Violation = string

/** Every command of package.json runs there. */
export const repository = process.cwd()

const notOurs = new Set(['node_modules', 'dist', '.build', '.git', 'coverage', 'terret-demo'])

/** Every text file below a folder, or nothing when the folder is not there yet. */
export function readTexts(folder: string): readonly TextFile[] {
  return listFiles(folder)
    .map((path) => ({ path, text: readText(path) }))
    .filter((file) => !file.text.includes('\0'))
}

export function readSources(folders: readonly string[]): readonly SourceFile[] {
  return folders
    .flatMap((folder) => listFiles(folder))
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => parse(path, readText(path)))
}

export function readText(path: string): string {
  return readFileSync(join(repository, path), 'utf8')
}

export function parse(path: string, text: string): SourceFile {
  const parsed = parseSync(path, text)
  const program = parsed.program as unknown as Node
  return { path, text, program, comments: parsed.comments, errors: parsed.errors.map((error) => error.message) }
}

export type Visit = (node: Node, parent: Node, key: string) => void

/** Visits every node below `node`, parents first. Every rule goes through all sources with it, so it makes no lists on the way. */
export function walk(node: Node, visit: Visit): void {
  for (const key in node) {
    const value = node[key]
    if (typeof value !== 'object' || value === null || key === 'parent') continue
    if (Array.isArray(value)) for (const child of value as readonly unknown[]) step(child, node, key, visit)
    else step(value, node, key, visit)
  }
}

function step(child: unknown, parent: Node, key: string, visit: Visit): void {
  if (!isNode(child)) return
  visit(child, parent, key)
  walk(child, visit)
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
}

export function nodeAt(node: Node, key: string): Node | null {
  const value = node[key]
  return isNode(value) ? value : null
}

export function nodesAt(node: Node, key: string): readonly Node[] {
  const value = node[key]
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isNode) : []
}

/** The name of an identifier or the value of a string literal; null for anything else. */
export function nameOf(node: Node | null): string | null {
  if (node?.type === 'Identifier' && typeof node['name'] === 'string') return node['name']
  if (node?.type === 'Literal' && typeof node['value'] === 'string') return node['value']
  return null
}

export function lineAt(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line++
  return line
}

export function violation(file: TextFile, offset: number, message: string): Violation {
  return `${file.path}:${lineAt(file.text, offset)} ${message}`
}

export interface Import {
  readonly specifier: string
  readonly offset: number
  /** The names it takes, where the syntax gives them. */
  readonly names: readonly string[]
  /** It is gone when the types are. */
  readonly isType: boolean
}

/** Every static, type-only, re-exporting and dynamic import of a file. */
export function importsOf(file: SourceFile): readonly Import[] {
  const found: Import[] = []
  walk(file.program, (node) => {
    const holder = importHolders[node.type]
    const specifier = holder === undefined ? null : nameOf(nodeAt(node, holder))
    if (specifier === null) return
    const names = nodesAt(node, 'specifiers').map((s) => nameOf(nodeAt(s, 'imported') ?? nodeAt(s, 'local')) ?? '*')
    found.push({ specifier, offset: node.start, names, isType: isTypeOnly(node) })
  })
  return found
}

/** The import is gone when the types are. */
function isTypeOnly(node: Node): boolean {
  if (node.type === 'TSImportType' || node['importKind'] === 'type' || node['exportKind'] === 'type') return true
  const names = nodesAt(node, 'specifiers')
  return names.length > 0 && names.every((name) => name['importKind'] === 'type' || name['exportKind'] === 'type')
}

const importHolders: Readonly<Record<string, string>> = {
  ImportDeclaration: 'source',
  ExportNamedDeclaration: 'source',
  ExportAllDeclaration: 'source',
  ImportExpression: 'source',
  TSImportType: 'source',
  TSExternalModuleReference: 'expression',
}

/** The repository path a relative specifier means; null for a package or a `node:` module. */
export function resolveImport(from: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null
  return posix.normalize(posix.join(posix.dirname(from), specifier))
}

function listFiles(folder: string): readonly string[] {
  const found: string[] = []
  for (const entry of entriesOf(folder)) {
    const path = posix.join(folder, entry.name)
    if (entry.isDirectory() && !notOurs.has(entry.name)) found.push(...listFiles(path))
    if (entry.isFile()) found.push(path)
  }
  return found.toSorted()
}

/** A folder that is not there yet holds nothing. Any other trouble is an error. */
function entriesOf(folder: string) {
  try {
    return readdirSync(join(repository, folder), { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
