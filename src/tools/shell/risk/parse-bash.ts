// Parses bash text into a flat list of syntax nodes, with tree-sitter. The parser is loaded once. It knows nothing of
// risk.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Parser } from 'web-tree-sitter'

export type SyntaxNode = {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly parent: SyntaxNode | null
  readonly children: readonly SyntaxNode[]
}

/** All nodes, parents before their children. `flaw` says what bash may read differently; null if nothing. */
export type BashSyntax = {
  readonly text: string
  readonly nodes: readonly SyntaxNode[]
  readonly flaw: string | null
  /** Texts in which bash expands something that has no node. */
  readonly unread: readonly string[]
}

/**
 * The parser requests its text in pieces, and requests them again when it backtracks. Much backtracking makes it slow.
 */
const PIECE_CHARACTERS = 128
const READS_MAX = 6_000
/** Each stage of a pipeline makes it slower, even without backtracking. */
const PIPES_MAX = 1000

const loading: { parser: Promise<Parser> | null } = { parser: null }

/** Null for a text that would take too long. Throws if the parser cannot be loaded, or breaks. */
export async function parseBash(text: string): Promise<BashSyntax | null> {
  loading.parser ??= loadParser()
  const parser = await loading.parser
  try {
    return parseText(parser, text)
  } catch (error) {
    // A trap in WebAssembly leaves its memory in an unknown state: the next command gets a new parser.
    loading.parser = null
    throw error
  }
}

async function loadParser(): Promise<Parser> {
  try {
    const { Language, Parser } = await import('web-tree-sitter')
    const wasmBinary = await readFile(locateWasm('web-tree-sitter.wasm', 'web-tree-sitter/web-tree-sitter.wasm'))
    await Parser.init({ wasmBinary })
    const grammar = locateWasm('tree-sitter-bash.wasm', '@vscode/tree-sitter-wasm/wasm/tree-sitter-bash.wasm')
    const parser = new Parser()
    parser.setLanguage(await Language.load(await readFile(grammar)))
    return parser
  } catch (error) {
    loading.parser = null
    throw error
  }
}

/** Finds the file beside the built module or its chunk; when run from source, in its package. */
function locateWasm(name: string, specifier: string): string {
  const built = [`../wasm/${name}`, `./wasm/${name}`].map((path) => fileURLToPath(new URL(path, import.meta.url)))
  return built.find((path) => existsSync(path)) ?? createRequire(import.meta.url).resolve(specifier)
}

function parseText(parser: Parser, text: string): BashSyntax | null {
  if (text.split('|', PIPES_MAX + 2).length > PIPES_MAX + 1) return null
  let reads = 0
  const piece = (index: number): string => {
    reads += 1
    return text.slice(index, index + PIECE_CHARACTERS)
  }
  const tree = parser.parse(piece, null, { progressCallback: () => reads > READS_MAX })
  if (tree === null) {
    parser.reset()
    return null
  }
  try {
    return walkTree(tree.walk(), text)
  } finally {
    tree.delete()
  }
}

type Cursor = ReturnType<NonNullable<ReturnType<Parser['parse']>>['walk']>
type GrowingNode = SyntaxNode & { readonly children: SyntaxNode[] }

/** A loop instead of recursion, because the caller chooses the nesting. */
function walkTree(cursor: Cursor, text: string): BashSyntax {
  const nodes: SyntaxNode[] = []
  const unread: string[] = []
  let flaw: string | null = null
  let parent: GrowingNode | null = null
  const lookAt = (piece: string): void => {
    if (!expands(piece)) return
    unread.push(piece)
    flaw ??= 'it expands something in an unusual place'
  }
  for (;;) {
    const node: GrowingNode = {
      type: cursor.nodeType,
      start: cursor.startIndex,
      end: cursor.endIndex,
      parent,
      children: [],
    }
    const astray = node.type === ';;' && parent?.type !== 'case_item'
    if (cursor.nodeIsNamed && !KNOWN.has(node.type)) flaw ??= 'it has syntax that is not known here'
    if (node.type === 'ERROR' || (node.start === node.end && cursor.nodeIsMissing) || astray)
      flaw ??= 'it is not plain bash syntax'
    const reached: number = parent === null ? 0 : (parent.children.at(-1)?.end ?? parent.start)
    const gap = text.slice(reached, node.start)
    if (!isGap(gap, parent?.type ?? '')) flaw ??= 'its spaces mean different things to different shells'
    if (gap.length > 1 && !isQuotedDocument(parent, text)) lookAt(gap)
    nodes.push(node)
    parent?.children.push(node)
    if (cursor.gotoFirstChild()) {
      parent = node
      continue
    }
    if (OPAQUE.has(node.type) && !isQuotedDocument(node, text)) lookAt(text.slice(node.start, node.end))
    if (node.type === 'word' && /[ \t\n]/.test(text.slice(node.start, node.end).replace(/\\[^]/g, ''))) {
      flaw ??= 'a word in it holds a space'
    }
    while (!cursor.gotoNextSibling()) {
      const end: number = parent?.children.at(-1)?.end ?? 0
      const rest: string = text.slice(end, parent === null ? end : parent.end)
      if (!isGap(rest, parent?.type ?? '')) flaw ??= 'it has text that no check reads'
      if (rest.length > 1 && !isQuotedDocument(parent, text)) lookAt(rest)
      if (!cursor.gotoParent()) {
        cursor.delete()
        if (!isGap(text.slice(nodes[0]?.end), '')) flaw ??= 'it has text that no check reads'
        return { text, nodes, flaw, unread }
      }
      parent = (parent?.parent ?? null) as GrowingNode | null
    }
  }
}

/** The named nodes of the grammar. A newer grammar may have more. */
const KNOWN: ReadonlySet<string> = new Set(
  (
    'word number string_content raw_string ansi_c_string regex comment variable_name special_variable_name heredoc_start ' +
    'heredoc_body heredoc_content heredoc_end file_descriptor test_operator extglob_pattern program redirected_statement ' +
    'for_statement c_style_for_statement variable_assignment unary_expression binary_expression postfix_expression ' +
    'parenthesized_expression while_statement do_group if_statement elif_clause else_clause case_statement case_item ' +
    'function_definition compound_statement subshell pipeline list negated_command test_command declaration_command ' +
    'unset_command command command_name variable_assignments subscript file_redirect heredoc_redirect ' +
    'herestring_redirect ternary_expression arithmetic_expansion brace_expression concatenation string ' +
    'translated_string array simple_expansion expansion command_substitution process_substitution ERROR'
  ).split(' '),
)
/** Nodes without inner nodes, in whose text bash may still expand something. */
const OPAQUE: ReadonlySet<string> = new Set(
  'word string_content regex heredoc_body heredoc_content test_operator extglob_pattern'.split(' '),
)

/** Whether bash would run a command or expand a parameter in this text. */
function expands(text: string): boolean {
  return /[$`]/.test(text) && /\$[({]|`/.test(text.replace(/\\[^]/g, ''))
}

/** Bash expands nothing in a here-document whose end marker is quoted. */
function isQuotedDocument(node: SyntaxNode | null, text: string): boolean {
  const redirect = node?.type === 'heredoc_redirect' ? node : node?.parent
  if (redirect?.type !== 'heredoc_redirect') return false
  const start = redirect.children.find(({ type }) => type === 'heredoc_start')
  return start !== undefined && /["'\\]/.test(text.slice(start.start, start.end))
}

/**
 * The text that may lie between the parts of a node, by its type. The grammar skips more than bash does: there the two
 * disagree.
 */
const ANYTHING = /^[^]*$/
const NOTHING = /^$/
/** Excludes the end of a line, which ends the command in bash. The grammar drops a lone dash, which is a word. */
const SPACES = /^(?:[ \t]|\\\n)*(?:-(?:[ \t]|\\\n)*)?$/
const LINES = /^(?:[ \t\n]|\\\n)*$/

const GAPS: Readonly<Record<string, RegExp>> = {
  string: ANYTHING,
  heredoc_body: ANYTHING,
  heredoc_redirect: ANYTHING,
  concatenation: NOTHING,
  simple_expansion: NOTHING,
  translated_string: NOTHING,
  subscript: NOTHING,
  variable_assignment: NOTHING,
  command: SPACES,
  redirected_statement: SPACES,
  file_redirect: SPACES,
  herestring_redirect: SPACES,
  negated_command: SPACES,
  declaration_command: SPACES,
  unset_command: SPACES,
  test_command: SPACES,
  unary_expression: SPACES,
  binary_expression: SPACES,
}

function isGap(gap: string, parent: string): boolean {
  return gap === '' || (GAPS[parent] ?? LINES).test(gap)
}
