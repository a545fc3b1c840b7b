// Rules about the text and syntax of one file: lengths, names, banned words and banned globals.
// It does not compare files with each other: imports.ts and records.ts do.
import {
  importsOf,
  lineAt,
  type Node,
  nameOf,
  nodeAt,
  nodesAt,
  type SourceFile,
  type TextFile,
  type Violation,
  violation,
  walk,
} from './source.ts'

const functionLinesMax = 70

export function unparsable(files: readonly SourceFile[]): readonly Violation[] {
  return files.flatMap((file) => file.errors.map((error) => violation(file, 0, error)))
}

/** A suite is a list of tests, not a procedure: the tests declared inside a function do not count as its lines. */
export function longFunctions(files: readonly SourceFile[]): readonly Violation[] {
  return check(files, (node, { file, report }) => {
    if (!functions.has(node.type)) return
    const lines = linesOf(file, node) - testLinesIn(file, node)
    if (lines > functionLinesMax) report(node, `is a function of ${lines} lines, more than ${functionLinesMax}`)
  })
}

export function anyTypes(files: readonly SourceFile[]): readonly Violation[] {
  return check(files, (node, { report }) => {
    if (node.type === 'TSAnyKeyword') report(node, 'uses any')
  })
}

export function defaultExports(files: readonly SourceFile[]): readonly Violation[] {
  return check(files, (node, { report }) => {
    const named = node.type === 'ExportSpecifier' && nameOf(nodeAt(node, 'exported')) === 'default'
    if (named || node.type === 'ExportDefaultDeclaration') report(node, 'has a default export')
  })
}

/** State machines are unions and behaviour is functions. Only an error has to extend something. */
export function classicalSyntax(files: readonly SourceFile[]): readonly Violation[] {
  return check(files, (node, { report }) => {
    const parent = nodeAt(node, 'superClass')
    if (parent !== null && nameOf(parent) !== 'Error') report(node, 'inherits')
    if (node.type === 'TSEnumDeclaration') report(node, 'declares an enum')
    if (node.type === 'Decorator') report(node, 'uses a decorator')
  })
}

export function unfinishedComments(files: readonly SourceFile[]): readonly Violation[] {
  return files.flatMap((file) =>
    file.comments
      .filter((comment) => /\b(TODO|FIXME|XXX)\b/.test(comment.value))
      .map((comment) => violation(file, comment.start, 'leaves work in a comment: open an issue instead')),
  )
}

export function focusedOrSkippedTests(files: readonly SourceFile[]): readonly Violation[] {
  return check(files, (node, { report }) => {
    const name = node.type === 'MemberExpression' ? nameOf(nodeAt(node, 'property')) : null
    if (name === 'only' || name === 'skip') report(node, `uses .${name}`)
  })
}

const bannedNames = /^(utils?|helpers?|commons?|managers?|services?|bases?|impls?|misc)$/i

/** A file is named after the noun it defines. A name that could hold anything ends up holding everything. */
export function bannedFileNames(files: readonly TextFile[]): readonly Violation[] {
  return files.flatMap((file) => {
    const banned = file.path.split(/[/.\-_]/).find((word) => bannedNames.test(word))
    return banned === undefined ? [] : [violation(file, 0, `is named "${banned}"`)]
  })
}

const impureGlobals = new Set([
  'Date',
  'process',
  'fetch',
  'crypto',
  'performance',
  'globalThis',
  'global',
  'console',
  'Buffer',
  'require',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
  'queueMicrotask',
])

/** The kernel runs unchanged in a browser and in the simulator, so it may touch nothing but its arguments. */
export function impureKernel(files: readonly SourceFile[]): readonly Violation[] {
  const imports = files.flatMap((file) =>
    importsOf(file)
      .filter(({ specifier }) => !specifier.startsWith('.'))
      .map(({ specifier, offset }) => violation(file, offset, `the kernel imports ${specifier}`)),
  )
  const globals = check(files, (node, { parent, key, report }) => {
    const name = nameOf(node)
    if (isReference(node, parent, key) && name !== null && impureGlobals.has(name)) report(node, `touches ${name}`)
    if (memberName(node) === 'Math.random') report(node, 'touches Math.random')
  })
  return [...imports, ...globals]
}

const uninjectedMembers = new Set([
  'Date.now',
  'Math.random',
  'performance.now',
  'process.hrtime',
  'AbortSignal.timeout',
  'crypto.randomUUID',
  'crypto.randomBytes',
  'crypto.getRandomValues',
])
const uninjectedNames = new Set(['setTimeout', 'setInterval', 'randomUUID', 'randomBytes', 'randomInt'])
const uninjectedModules = new Set(['node:timers', 'node:timers/promises', 'node:perf_hooks'])

/** Time and chance reach the runtime as ports, so that a test can set them and the simulator can replay them. */
export function uninjected(files: readonly SourceFile[]): readonly Violation[] {
  const imports = files.flatMap((file) =>
    importsOf(file)
      .filter(({ specifier }) => uninjectedModules.has(specifier))
      .map(({ specifier, offset }) => violation(file, offset, `imports ${specifier}`)),
  )
  const uses = check(files, (node, { parent, key, report }) => {
    const member = memberName(node)
    if (member !== null && uninjectedMembers.has(member)) report(node, `uses ${member}`)
    const name = nameOf(node)
    if (isReference(node, parent, key) && name !== null && uninjectedNames.has(name)) report(node, `uses ${name}`)
    const bare = node.type === 'CallExpression' || nodesAt(node, 'arguments').length === 0
    const made = node.type === 'CallExpression' || node.type === 'NewExpression'
    if (made && bare && nameOf(nodeAt(node, 'callee')) === 'Date') report(node, 'reads the clock with Date')
  })
  return [...imports, ...uses]
}

interface Place {
  readonly file: SourceFile
  readonly parent: Node
  readonly key: string
  readonly report: (node: Node, message: string) => void
}

function check(files: readonly SourceFile[], rule: (node: Node, place: Place) => void): readonly Violation[] {
  return files.flatMap((file) => {
    const found: Violation[] = []
    const report = (node: Node, message: string) => void found.push(violation(file, node.start, message))
    walk(file.program, (node, parent, key) => rule(node, { file, parent, key, report }))
    return found
  })
}

const keyed = new Set([
  'Property',
  'MethodDefinition',
  'PropertyDefinition',
  'TSPropertySignature',
  'TSMethodSignature',
])

/** Whether an identifier stands for a value or type, and not for the name of a member. */
function isReference(node: Node, parent: Node, key: string): boolean {
  if (node.type !== 'Identifier') return false
  if (parent['computed'] === true) return true
  if (parent.type === 'MemberExpression') return key !== 'property'
  if (parent.type === 'ImportSpecifier') return key === 'imported'
  if (parent.type === 'TSNamedTupleMember') return key !== 'label'
  return !(keyed.has(parent.type) && key === 'key')
}

/** `Date.now` for `Date.now` and for `globalThis.Date.now`. */
function memberName(node: Node): string | null {
  if (node.type !== 'MemberExpression') return null
  const object = nodeAt(node, 'object')
  const holder = object?.type === 'MemberExpression' ? nodeAt(object, 'property') : object
  return `${nameOf(holder) ?? ''}.${nameOf(nodeAt(node, 'property')) ?? ''}`
}

const functions = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])
const declaresTests = new Set(['describe', 'it', 'test', 'suite'])

function testLinesIn(file: SourceFile, node: Node): number {
  let lines = 0
  let end = -1
  walk(node, (inner) => {
    if (inner.start < end || inner.type !== 'CallExpression' || !declaresTests.has(rootName(inner))) return
    end = inner.end
    lines += linesOf(file, inner) - 1
  })
  return lines
}

/** `describe` for `describe(…)`, `describe.each(…)(…)` and `describe.skipIf(…)(…)`. */
function rootName(node: Node): string {
  const inner = nodeAt(node, 'callee') ?? nodeAt(node, 'object') ?? nodeAt(node, 'tag')
  return inner === null ? (nameOf(node) ?? '') : rootName(inner)
}

function linesOf(file: SourceFile, node: Node): number {
  return lineAt(file.text, node.end) - lineAt(file.text, node.start) + 1
}
