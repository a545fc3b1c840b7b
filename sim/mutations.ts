// The mechanical mutations of a source file: a comparison that includes what it left out, `&&` for `||`, a statement left out, a number one
// higher, an `if` that is never true, a `!` or a `return` left out. What becomes of them is for mutate.ts.
import { parseSync } from 'oxc-parser'

export type Mutation = {
  readonly file: string
  /** `src/kernel/fold.ts:38:5 left out`: unique, and what `--only` takes. */
  readonly name: string
  readonly from: number
  readonly to: number
  readonly put: string
  /** The line in which it begins, before and after. */
  readonly was: string
  readonly becomes: string
}

/** What is changed in a text: from where, to where, into what, and the kind of change. */
type Change = { readonly from: number; readonly to: number; readonly put: string; readonly kind: string }
type Node = { readonly type: string; readonly start: number; readonly end: number; readonly [key: string]: unknown }

const FLIPS: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
}
/** What is said to people is not judged, and neither are types. */
const LEFT_ALONE = new Set(['ImportDeclaration', 'ThrowStatement', 'TemplateLiteral'])
const TRANSPARENT = new Set(['TSNonNullExpression', 'TSAsExpression', 'TSSatisfiesExpression'])

export function mutationsOf(file: string, text: string): readonly Mutation[] {
  const changes: Change[] = []
  visit(parseSync(file, text).program as unknown as Node, null, text, changes)
  return changes.map((change) => described(file, text, change))
}

function visit(node: Node, parent: Node | null, text: string, changes: Change[]): void {
  if (LEFT_ALONE.has(node.type) || (node.type.startsWith('TS') && !TRANSPARENT.has(node.type))) return
  const change = changeOf(node, parent, text)
  if (change) changes.push(change)
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value])
      if (isNode(child)) visit(child, node, text, changes)
  }
}

function changeOf(node: Node, parent: Node | null, text: string): Change | null {
  const { type, start, end } = node
  switch (type) {
    case 'BinaryExpression': {
      const to = FLIPS[String(node['operator'])]
      return to === undefined ? null : operatorOf(node, text, to)
    }
    case 'LogicalExpression':
      return node['operator'] === '??' ? null : operatorOf(node, text, node['operator'] === '&&' ? '||' : '&&')
    case 'UnaryExpression':
      return node['operator'] === '!' ? { from: start, to: start + 1, put: '', kind: 'without its !' } : null
    case 'ExpressionStatement':
      return /Call|Await|Assignment|Update/.test((node['expression'] as Node).type)
        ? { from: start, to: end, put: ';{}', kind: 'left out' }
        : null
    case 'Literal':
      return typeof node['value'] === 'number' && parent?.type !== 'Property'
        ? { from: start, to: end, put: `(${node['value']} + 1)`, kind: 'one more' }
        : null
    case 'IfStatement':
    case 'ConditionalExpression': {
      const test = node['test'] as Node
      return { from: test.start, to: test.end, put: 'false', kind: 'never' }
    }
    case 'ReturnStatement':
      return parent?.type === 'BlockStatement' && !node['argument']
        ? { from: start, to: end, put: ';{}', kind: 'goes on' }
        : null
    default:
      return null
  }
}

function operatorOf(node: Node, text: string, put: string): Change {
  const operator = String(node['operator'])
  const left = node['left'] as Node
  const from = left.end + text.slice(left.end, (node['right'] as Node).start).indexOf(operator)
  return { from, to: from + operator.length, put, kind: `${operator} to ${put}` }
}

function described(file: string, text: string, { from, to, put, kind }: Change): Mutation {
  const before = text.slice(0, from)
  const lineStart = before.lastIndexOf('\n') + 1
  const place = `${before.split('\n').length}:${from - lineStart + 1}`
  return {
    file,
    name: `${file}:${place} ${kind}`,
    from,
    to,
    put,
    was: text.slice(lineStart, endOfLine(text, from)).trim(),
    becomes: `${text.slice(lineStart, from)}${put}${text.slice(to, endOfLine(text, to))}`.trim(),
  }
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}
