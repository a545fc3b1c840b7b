// Walks one parsed text: every call, assignment, redirection and function in it, at any depth. Calls are judged in
// judge-call.ts.
import { type RiskReporter, judgeAssignment, judgeShellCall, judgeSubscripts, type StdinSource } from './judge-call.ts'
import type { RiskFindings } from './risk-level.ts'
import type { BashSyntax, SyntaxNode } from './parse-bash.ts'
import { isSecret, isSink, isSocket, writeLevel } from './risky-paths.ts'
import { plainWord, UNKNOWN_PART, type ShellWord, wordsIn } from './shell-words.ts'

const REDIRECTS = new Set(['file_redirect', 'heredoc_redirect', 'herestring_redirect'])

/** The budget of steps for nested walks: only nesting that is made to be slow uses it up. */
const STEPS_MAX = 5_000_000

type ScriptReading = RiskReporter &
  BashSyntax & {
    readonly steps: { left: number }
    /** The known standard input of nodes, so that no path to the root is walked twice. */
    readonly inputs: Map<SyntaxNode, StdinSource>
    /** The texts that are printed in a node. */
    readonly texts: Map<SyntaxNode, readonly string[]>
  }

/** Judges every node, however deep and however many. */
export function judgeScript(syntax: BashSyntax, where: RiskReporter): void {
  const reading: ScriptReading = {
    ...syntax,
    ...where,
    steps: { left: STEPS_MAX },
    inputs: new Map(),
    texts: new Map(),
  }
  for (const node of syntax.nodes) judgeNode(node, reading)
  if (reading.steps.left <= 0) where.findings.note('needs_approval', 'The command nests too deep to be read.')
}

function judgeNode(node: SyntaxNode, reading: ScriptReading): void {
  const { findings } = reading
  switch (node.type) {
    case 'command':
      // `((…))` is a command without a program.
      if (node.children[0]?.children[0]?.type === 'arithmetic_expansion')
        findings.note('bounded_write', 'It calculates.')
      else judgeWords(node, callWords(node, reading), reading)
      return
    case 'redirected_statement':
      if (!REDIRECTS.has(node.children[0]?.type ?? '')) return
      judgeWords(node, extraWords(node.children, reading.text), reading)
      return
    case 'variable_assignment':
      judgeAssignment((nodeText(node, reading).match(/^\w+/) ?? [''])[0], reading)
      // A number that is read from a variable may be a subscript too.
      judgeSubscripts(quotedWords(node, reading), reading)
      return
    case 'expansion':
      if (!nodeText(node, reading).endsWith('@P}')) return
      findings.note('needs_approval', 'It expands a text that is only known when it runs.')
      reading.doubt()
      return
    case 'declaration_command':
    case 'unset_command':
      findings.note('bounded_write', 'It changes variables.')
      judgeSubscripts(wordsIn(node.children, reading.text), reading)
      reading.run({
        words: [plainWord(node.children[0]?.type ?? ''), ...wordsIn(node.children, reading.text)],
        programs: [0],
      })
      return
    case 'for_statement':
      if (/^\w+\s+[A-Z_]+\b/.test(nodeText(node, reading)))
        findings.note('bounded_write', 'A loop sets a variable in capitals.')
      return
    case 'file_redirect':
      judgeRedirect(node, reading)
      return
    case 'function_definition':
      findings.note('bounded_write', 'A function is defined.')
      if (startsItselfTwice(node, reading)) findings.note('blocked', 'A function starts itself twice, without end.')
      return
    case 'heredoc_redirect':
      if (!endsWhereBashDoes(node, reading)) findings.note('needs_approval', 'A here-document has an unusual end.')
      return
    case 'test_command':
    case 'arithmetic_expansion':
      judgeSubscript(nodeText(node, reading), findings)
      for (const word of quotedWords(node, reading)) judgeSubscripts([word], reading)
      return
    case 'command_substitution':
      judgeBackticks(nodeText(node, reading), reading)
      return
    case '&':
      if (node.parent?.type !== 'binary_expression')
        findings.note('needs_approval', 'It starts something in the background.')
      return
    default:
  }
}

function judgeWords(node: SyntaxNode, words: readonly ShellWord[], reading: ScriptReading): void {
  const printed = (): readonly string[] => node.children.flatMap((child) => printedIn(child, reading))
  judgeShellCall({ words, stdin: () => stdinOf(node, reading), printed }, reading)
}

/** Within backticks a backslash escapes a character only for the inner shell. */
function judgeBackticks(text: string, { script }: ScriptReading): void {
  if (text.startsWith('`') && text.includes('\\')) script(text.slice(1, -1).replace(/\\([$`\\])/g, '$1'))
}

function quotedWords(node: SyntaxNode, reading: ScriptReading): readonly ShellWord[] {
  return descendants(node, reading).flatMap((one) => (one.type === 'raw_string' ? wordsIn([one], reading.text) : []))
}

/** Bash evaluates a subscript as a command, even a quoted one. */
function judgeSubscript(text: string, findings: RiskFindings): void {
  if (text.startsWith('((')) findings.note('bounded_write', 'It may set variables.')
  const at = text.indexOf('[', 2)
  if (at >= 0 && /[$`]/.test(text.slice(at))) findings.note('bounded_write', 'A subscript may run a command.')
}

/** The grammar and bash must agree where the data ends and commands begin again. */
function endsWhereBashDoes(redirect: SyntaxNode, reading: ScriptReading): boolean {
  const part = (type: string): string => {
    const node = redirect.children.find((child) => child.type === type)
    return node ? nodeText(node, reading) : ''
  }
  const end = part('heredoc_start').replace(/["']|\\([^])/g, (_, escaped: string | undefined) => escaped ?? '')
  const strips = redirect.children[0]?.type === '<<-'
  const lines = part('heredoc_body').split('\n')
  const isEnd = (line: string): boolean => (strips ? line.replace(/^\t+/, '') : line) === end
  return part('heredoc_end').trim() === end && !lines.slice(0, -1).some(isEnd)
}

function nodeText(node: SyntaxNode, { text }: BashSyntax): string {
  return text.slice(node.start, node.end)
}

/** The grammar attaches words that follow a redirection to the redirection: they belong to the call before it. */
function callWords(command: SyntaxNode, { text }: BashSyntax): readonly ShellWord[] {
  const statement = statementOf(command)
  const behind = statement === null ? [] : extraWords(statement.children, text)
  return [...wordsIn(command.children, text), ...extraWords(command.children, text), ...behind]
}

/** The redirected statement whose last call this is. */
function statementOf(command: SyntaxNode): SyntaxNode | null {
  let node = command
  for (let parent = node.parent; parent !== null; node = parent, parent = node.parent) {
    if (parent.type === 'redirected_statement') return parent.children[0] === node ? parent : null
    if (!['list', 'pipeline', 'negated_command'].includes(parent.type) || parent.children.at(-1) !== node) return null
  }
  return null
}

function extraWords(nodes: readonly SyntaxNode[], text: string): readonly ShellWord[] {
  return nodes.flatMap(({ type, children }) => {
    if (type === 'file_redirect') return wordsIn(children, text).slice(1)
    return type === 'heredoc_redirect' ? [...wordsIn(children, text), ...extraWords(children, text)] : []
  })
}

function judgeRedirect(redirect: SyntaxNode, { findings, text }: ScriptReading): void {
  const [target] = wordsIn(redirect.children, text)
  const operator = redirect.children.find(({ type }) => /^[<>&|]+$/.test(type))?.type ?? '>'
  if (target === undefined) return
  if (isSecret(target)) findings.note('needs_approval', `It names ${target.text}, which holds secrets.`)
  if (isSocket(target)) findings.note('needs_approval', `It opens ${target.text}.`)
  if (operator.startsWith('<') || isSink(target)) return
  if (operator.endsWith('&') && /^(\d+-?|-)$/.test(target.text)) return
  findings.note(writeLevel(target) ?? 'bounded_write', `It writes to ${target.computed ? 'a file' : target.text}.`)
}

/** A function whose body pipes it into itself: each call starts two more. */
function startsItselfTwice(definition: SyntaxNode, reading: ScriptReading): boolean {
  const named = definition.children.find(({ type }) => type === 'word')
  const name = named ? nodeText(named, reading) : ''
  const calls = (node: SyntaxNode): boolean =>
    descendants(node, reading).some(
      (child) => child.type === 'command_name' && wordsIn([child], reading.text)[0]?.text === name,
    )
  const pipelines = descendants(definition, reading).filter(({ type }) => type === 'pipeline')
  return pipelines.some(({ children }) => children.filter(calls).length > 1)
}

/** The node and all nodes below it. A loop instead of recursion, because the caller chooses the nesting. */
function descendants(node: SyntaxNode, { steps }: ScriptReading): readonly SyntaxNode[] {
  const found: SyntaxNode[] = []
  const open = [node]
  for (let next = open.pop(); next !== undefined && steps.left > 0; next = open.pop()) {
    steps.left -= 1
    found.push(next)
    for (const child of next.children) open.push(child)
  }
  return found
}

const INHERITED: StdinSource = { from: 'inherited', texts: [] }

/** The source of this node's standard input, and the texts around it that could be in it. */
function stdinOf(start: SyntaxNode, reading: ScriptReading): StdinSource {
  const path: SyntaxNode[] = []
  let above: StdinSource = INHERITED
  for (let node: SyntaxNode | null = start; node !== null && reading.steps.left > 0; node = node.parent) {
    const known = reading.inputs.get(node)
    if (known !== undefined) {
      above = known
      break
    }
    path.push(node)
  }
  for (const node of path.toReversed()) {
    const own = ownStdin(node, reading)
    // The nearest redirection from a file wins, but a pipe anywhere around needs an approval.
    const from = above.from === 'pipe' || own.from === 'inherited' ? above.from : own.from
    const texts = own.texts.length === 0 ? above.texts : [...above.texts, ...own.texts]
    reading.steps.left -= own.texts.length === 0 ? 0 : texts.length
    above = { from, texts }
    reading.inputs.set(node, above)
  }
  return above
}

/** The standard input that this node itself, or its place among its siblings, gives. */
function ownStdin(node: SyntaxNode, reading: ScriptReading): StdinSource {
  const { parent } = node
  const texts: string[] = []
  let from: StdinSource['from'] = 'inherited'
  reading.steps.left -= node.children.length
  for (const redirect of node.children) {
    const isText = redirect.type === 'heredoc_redirect' || redirect.type === 'herestring_redirect'
    const isFile = redirect.type === 'file_redirect' && redirect.children.some(({ type }) => type === '<')
    if (isText || isFile) texts.push(...printedIn(redirect, reading))
    if (isFile) from = wordsIn(redirect.children, reading.text)[0]?.computed ? 'pipe' : 'file'
  }
  // `>(…)` reads what is printed into it.
  if (node.type === 'process_substitution' && nodeText(node, reading).startsWith('>'))
    return { from: 'pipe', texts: printedInto(node, reading) }
  if (parent?.type === 'heredoc_redirect') return { from: 'pipe', texts: [...texts, ...printedIn(parent, reading)] }
  if (parent?.type !== 'pipeline' || parent.children[0] === node) return { from, texts }
  for (const stage of parent.children) {
    if (stage === node) break
    texts.push(...printedIn(stage, reading))
  }
  return { from: 'pipe', texts }
}

/** The texts that a statement prints into this process substitution. */
function printedInto({ parent }: SyntaxNode, reading: ScriptReading): readonly string[] {
  const statement = parent?.type === 'file_redirect' ? parent.parent : null
  const [body] = statement?.children ?? []
  return statement?.type === 'redirected_statement' && body ? printedIn(body, reading) : []
}

/** Texts printed in this node: here-documents, here-strings, and arguments of `echo` and `printf`. */
function printedIn(stage: SyntaxNode, reading: ScriptReading): readonly string[] {
  const { text, steps } = reading
  const known = reading.texts.get(stage)
  if (known !== undefined) return known
  const texts: string[] = []
  const open = [stage]
  for (let node = open.pop(); node !== undefined && steps.left > 0; node = open.pop()) {
    steps.left -= 1
    const inner = reading.texts.get(node)
    if (inner !== undefined) {
      texts.push(...inner)
      steps.left -= inner.length
      continue
    }
    if (node.type === 'heredoc_body') texts.push(nodeText(node, reading))
    if (node.type === 'herestring_redirect')
      for (const word of wordsIn(node.children, text)) texts.push(word.text.replaceAll(UNKNOWN_PART, ' '))
    if (node.type === 'command')
      for (const line of printedBy(callWords(node, reading))) texts.push(line.replaceAll(UNKNOWN_PART, ' '))
    for (const child of node.children) open.push(child)
  }
  reading.texts.set(stage, texts)
  return texts
}

function printedBy(words: readonly ShellWord[]): readonly string[] {
  const [name, ...args] = words.map(({ text }) => text)
  if (name !== 'echo' && name !== 'printf') return []
  const line = args.filter((text) => !/^-[neE]+$/.test(text)).join(' ')
  return [line, line.replaceAll('\\n', '\n'), ...(args.length > 1 ? args : [])]
}
