// The one shell reader: what a command text can run, and how risky that is. Command rules of a policy and the approval
// of the bash tool both use it. It reports if it cannot read the whole text; then no rule allows the command.
import type { RiskReporter, ProgramRun } from './judge-call.ts'
import { RiskFindings, type Risk } from './risk-level.ts'
import { reportMentions } from './mentions.ts'
import { parseBash, type BashSyntax } from './parse-bash.ts'
import { judgeScript } from './judge-script.ts'

export type ShellReading = {
  readonly risk: Risk
  /** Every call in the text, also in texts that are passed to shells in it. */
  readonly runs: readonly ProgramRun[]
  /** False if a program may run whose name is not in `runs`. */
  readonly whole: boolean
  /** The text is a single call of plain words, which a shell only splits. */
  readonly plain: boolean
}

/** Twice the limit of the bash tool. */
const COMMAND_CHARACTERS_MAX = 200_000
/** The limit for all nested texts together (`sh -c "sh -c …"`): deeper nesting is meant to be unreadable. */
const TOTAL_CHARACTERS_MAX = 600_000
/** Further texts in one command are not read. */
const MENTIONS_MAX = 2_000

/** Programs that run a text they are given, some of them on another machine. */
const RUN_TEXT = new Set(
  (
    'sh bash dash zsh ksh mksh ash rbash fish csh tcsh ' +
    'eval trap env su runuser watch parallel flock script ssh find rebase'
  ).split(' '),
)

/**
 * Never throws: a command that cannot be read is for a person to decide. `mentions`: also reads texts that are data for
 * the shell as commands, and adds their calls to `runs`. Rules that ask or deny need this; the risk does not.
 */
export async function readShell(command: string, { mentions = false } = {}): Promise<ShellReading> {
  const reader = new ShellReader(mentions)
  await reader.read(command)
  return reader.reading()
}

class ShellReader {
  readonly #findings = new RiskFindings()
  readonly #runs: ProgramRun[] = []
  readonly #mentioned = new Set<string>()
  readonly #withMentions: boolean
  #whole = true
  #plain = false
  #left = TOTAL_CHARACTERS_MAX

  constructor(withMentions: boolean) {
    this.#withMentions = withMentions
  }

  reading(): ShellReading {
    return { risk: this.#findings.risk(), runs: this.#runs, whole: this.#whole, plain: this.#plain }
  }

  async read(command: string): Promise<void> {
    const doubt = (): void => void (this.#whole = false)
    await this.#readAll(new Set([command]), Number.POSITIVE_INFINITY, (script) => this.#case(script, doubt))
    if (this.#mentioned.size === 0) return
    // A text that only might run adds no risk. It adds doubt only if the command has a program that runs texts.
    const runsTexts = this.#runs.some(({ words }) => words.some(({ text }) => RUN_TEXT.has(baseName(text))))
    const heard = runsTexts ? doubt : (): void => {}
    await this.#readAll(this.#mentioned, MENTIONS_MAX, (script) => {
      return { ...this.#case(script, heard), findings: new RiskFindings(), isMention: true }
    })
  }

  #case(script: (text: string) => void, doubt: () => void): TextReporter {
    return {
      findings: this.#findings,
      script,
      doubt,
      run: (run) => void (this.#withMentions && this.#runs.push(run)),
      mention: (text) => void (this.#withMentions && this.#mentioned.add(text)),
      isMention: false,
    }
  }

  /** Reads the texts, and further texts that are found in them. */
  async #readAll(
    texts: Set<string>,
    countMax: number,
    caseOf: (script: (text: string) => void) => TextReporter,
  ): Promise<void> {
    const where = caseOf((inner) => void texts.add(inner))
    let count = 0
    // A set is iterated in the order of additions, including those made meanwhile.
    for (const text of texts) {
      count += 1
      this.#left -= text.length
      if (text.length > COMMAND_CHARACTERS_MAX || this.#left < 0 || count > countMax) {
        where.findings.note('needs_approval', 'The command is too long to be read.')
        this.#whole = false
        return
      }
      const plain = await readText(text, where)
      if (count === 1 && !where.isMention) this.#plain = plain
    }
  }
}

/** `isMention`: bash does not read the text as a command, so it need not be valid. */
type TextReporter = RiskReporter & { readonly isMention: boolean }

function baseName(program: string): string {
  return program.slice(program.lastIndexOf('/') + 1)
}

/** Returns whether the text is a single call of plain words. */
async function readText(text: string, where: TextReporter): Promise<boolean> {
  const { script } = where
  const unread = (reason: string): void => {
    where.findings.note('needs_approval', reason)
    if (!where.isMention) where.doubt()
  }
  // oxlint-disable-next-line no-control-regex -- they are what it is about
  if (/[\0-\x08\x0b-\x1f\x7f]/.test(text)) unread('The command holds control characters.')
  // A backslash at the end of a line joins it to the next, even within a word; the grammar does not know this.
  if (text.includes('\\\n')) script(text.replaceAll('\\\n', ''))
  try {
    const syntax = await parseBash(text)
    if (syntax === null) {
      unread('The command takes too long to be read.')
      // Still search its parts for forbidden commands, as far as they can be read alone.
      for (const part of text.split(/[\n;|&]+/)) if (part !== text) script(part)
      return false
    }
    if (syntax.flaw !== null) {
      unread(`The command cannot be read for sure: ${syntax.flaw}.`)
      // In bash `((` may open two subshells, and a backslash may begin a word after a line end. The grammar knows
      // neither.
      script(text.replace(/\((?=\()/g, '( ').replace(/\n\\(?=\w)/g, '\n'))
      for (const piece of syntax.unread) for (const inner of substitutionsIn(piece)) script(inner)
      for (const part of splitParts(text)) if (part !== text) where.mention(part)
    }
    reportMentions(syntax, where)
    judgeScript(syntax, where)
    return isPlainCall(syntax)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    unread(`The command cannot be read: ${reason}.`)
    if (where.isMention) where.doubt()
    return false
  }
}

const PARTS_MAX = 200

/** Parts of an unreadable text: each may be a command alone. */
function splitParts(text: string): readonly string[] {
  return text.split(/[\n;|&`(){}]+|\$\(/, PARTS_MAX).filter((part) => /\S/.test(part))
}

/** The content of the substitutions in such a text, each up to its end as far as parentheses show it. */
function substitutionsIn(text: string): readonly string[] {
  const found = Array.from(text.matchAll(/`([^`]*)`/g), ([, inner = '']) => inner)
  const open: number[] = []
  for (let at = 0; at < text.length && found.length < PARTS_MAX; at++) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '(') open.push(at + 1)
    else if (text[at] === ')') found.push(text.slice(open.pop() ?? at, at))
  }
  return found
}

const PLAIN_TYPES: ReadonlySet<string> = new Set(
  'program command command_name word number string string_content " raw_string concatenation'.split(' '),
)
const PLAIN_TEXT: Readonly<Record<string, RegExp>> = {
  word: /^[A-Za-z0-9_@%+=:,./^-]+$/,
  number: /^[0-9]+$/,
  // A shell still expands within double quotes.
  string: /^[^$`\\!\n]*$/,
  raw_string: /^[^\n]*$/,
  // Unquoted, it would set a variable.
  command_name: /^[^=]*$/,
}

function isPlainCall({ text, nodes, flaw }: BashSyntax): boolean {
  if (flaw !== null || nodes.filter(({ type }) => type === 'command').length !== 1) return false
  if (/^[ \t]*[\n]|\n[ \t]*$/.test(text)) return false
  return nodes.every(({ type, start, end }) => {
    return PLAIN_TYPES.has(type) && (PLAIN_TEXT[type]?.test(text.slice(start, end)) ?? true)
  })
}
