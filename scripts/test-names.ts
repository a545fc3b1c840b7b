// The names of the tests that cite behaviours (B-…) or scenarios (AC-…), read from their syntax. It runs no test and judges none.
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { type Node, nodeAt, nodesAt, parse, walk } from '../test/tidy/source.ts'

export interface TestFile {
  readonly path: string
  readonly text: string
}

export interface Named {
  readonly path: string
  /** As it stands in the test, with `…` for what is computed. */
  readonly name: string
  /** The name without what it cites. */
  readonly sentence: string
  /** The titles of the `describe` around it, the outermost first. */
  readonly subjects: readonly string[]
  /** The behaviours and scenarios that the name cites. */
  readonly ids: readonly string[]
}

export const BEHAVIOUR = /\bB(?:-[A-Z][A-Z0-9]*)+-\d+\b/g
export const SCENARIO = /\bAC-\d+\b/g

/** A test's name begins with what it cites, and then says what holds. */
const NAME = /^(?:(?:AC-\d+|B(?:-[A-Z][A-Z0-9]*)+-\d+)(?:, )?)+: /

/** Every TypeScript file below test/, but those that hold made-up numbers. */
export function readTests(root: string): readonly TestFile[] {
  return filesBelow(root, 'test')
    .filter((path) => /\.tsx?$/.test(path) && !/^test\/(tidy|scenarios)/.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
}

/** Any text that begins as a name does is one, also in a table that `it.each` is given. */
export function namesIn({ path, text }: TestFile): readonly Named[] {
  const found: Named[] = []
  const { program } = parse(path, text)
  const describes = describesIn(program)
  walk(program, (node) => {
    const name = textOf(node)
    if (name === null || !NAME.test(name)) return
    const ids = [...new Set([...(name.match(BEHAVIOUR) ?? []), ...(name.match(SCENARIO) ?? [])])]
    const around = describes.filter(({ start, end }) => start < node.start && node.end < end)
    const subjects = around.map(({ title }) => title.replace(NAME, ''))
    found.push({ path, name, sentence: name.replace(NAME, ''), subjects, ids })
  })
  return found
}

interface Describe {
  readonly title: string
  /** From where its body begins: its own title is not in it. */
  readonly start: number
  readonly end: number
}

/** `describe('…', …)`, `describe.each(…)('…', …)` and `describe.skipIf(…)('…', …)`. */
function describesIn(program: Node): readonly Describe[] {
  const found: Describe[] = []
  walk(program, (node) => {
    if (node.type !== 'CallExpression' || calledName(node) !== 'describe') return
    const [first, ...rest] = nodesAt(node, 'arguments')
    const title = first === undefined ? null : textOf(first)
    if (first !== undefined && title !== null && rest.length > 0) found.push({ title, start: first.end, end: node.end })
  })
  return found
}

function calledName(call: Node): unknown {
  let node: Node | null = call
  while (node !== null && node.type !== 'Identifier') node = nodeAt(node, 'callee') ?? nodeAt(node, 'object')
  return node?.['name']
}

function textOf(node: Node): string | null {
  if (node.type === 'Literal' && typeof node['value'] === 'string') return node['value']
  if (node.type !== 'TemplateLiteral') return null
  const quasis = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[]
  return quasis.map(({ value }) => value.cooked).join('…')
}

export function numberOf(id: string): number {
  return Number(/\d+$/.exec(id)?.[0])
}

function filesBelow(root: string, folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = posix.join(folder, entry.name)
      return entry.isDirectory() ? filesBelow(root, path) : [path]
    })
    .toSorted()
}
