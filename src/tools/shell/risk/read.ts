// The one reader of shell: what a command text can run, and how risky that is. Command rules of a policy and the approval of the
// bash tool both use it. What it cannot read whole it says so; then no rule allows the command.
import type { Case, Run } from './call.ts'
import { Findings, type Risk } from './level.ts'
import { mentionsIn } from './mentions.ts'
import { parseBash, type Syntax } from './parse.ts'
import { judgeScript } from './script.ts'

export type ShellReading = {
  readonly risk: Risk
  /** Every call in the text, also in the texts that shells in it are given. */
  readonly runs: readonly Run[]
  /** False when a program may run whose name is not in `runs`. */
  readonly whole: boolean
  /** The text is a single call of plain words, and a shell does nothing but split it. */
  readonly plain: boolean
}

/** The bash tool takes half of this. */
const COMMAND_CHARACTERS_MAX = 200_000
/** Of all texts in texts together (`sh -c "sh -c …"`): what nests further is made to be unreadable. */
const TOTAL_CHARACTERS_MAX = 600_000
/** More texts than this in one command are not read one by one. */
const MENTIONS_MAX = 2_000

/** Programs that run a text which is given to them, some of them on another machine. */
const RUN_TEXT = new Set(
  (
    'sh bash dash zsh ksh mksh ash rbash fish csh tcsh ' +
    'eval trap env su runuser watch parallel flock script ssh find rebase'
  ).split(' '),
)

/**
 * Never throws: what cannot be read is for a person to decide. `mentions`: texts that are data for the shell are read as commands too,
 * and what they would run is in `runs`. Rules that ask or deny need this, the risk does not.
 */
export async function readShell(command: string, { mentions = false } = {}): Promise<ShellReading> {
  const reader = new Reader(mentions)
  await reader.read(command)
  return reader.reading()
}

class Reader {
  readonly #findings = new Findings()
  readonly #runs: Run[] = []
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
    // What only might be run is no risk, and no reason to doubt unless a program is there that runs texts.
    const runsTexts = this.#runs.some(({ words }) => words.some(({ text }) => RUN_TEXT.has(baseOf(text))))
    const heard = runsTexts ? doubt : (): void => {}
    await this.#readAll(this.#mentioned, MENTIONS_MAX, (script) => {
      return { ...this.#case(script, heard), findings: new Findings(), isMention: true }
    })
  }

  #case(script: (text: string) => void, doubt: () => void): TextCase {
    return {
      findings: this.#findings,
      script,
      doubt,
      run: (run) => void (this.#withMentions && this.#runs.push(run)),
      mention: (text) => void (this.#withMentions && this.#mentioned.add(text)),
      isMention: false,
    }
  }

  /** Reads the texts and those that are found in them. */
  async #readAll(
    texts: Set<string>,
    countMax: number,
    caseOf: (script: (text: string) => void) => TextCase,
  ): Promise<void> {
    const where = caseOf((inner) => void texts.add(inner))
    let count = 0
    // A set is read in the order of its additions, also of those made while it is read.
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

/** `isMention`: bash does not read it as a command, so it need not be one. */
type TextCase = Case & { readonly isMention: boolean }

function baseOf(program: string): string {
  return program.slice(program.lastIndexOf('/') + 1)
}

/** Whether the text is a single call of plain words. */
async function readText(text: string, where: TextCase): Promise<boolean> {
  const { script } = where
  const unread = (reason: string): void => {
    where.findings.note('needs_approval', reason)
    if (!where.isMention) where.doubt()
  }
  // oxlint-disable-next-line no-control-regex -- they are what it is about
  if (/[\0-\x08\x0b-\x1f\x7f]/.test(text)) unread('The command holds control characters.')
  // A backslash at the end of a line joins it to the next, even within a word, which the grammar does not know.
  if (text.includes('\\\n')) script(text.replaceAll('\\\n', ''))
  try {
    const syntax = await parseBash(text)
    if (syntax === null) {
      unread('The command takes too long to be read.')
      // It is still searched for what is forbidden, as far as its parts can be read alone.
      for (const part of text.split(/[\n;|&]+/)) if (part !== text) script(part)
      return false
    }
    if (syntax.flaw !== null) {
      unread(`The command cannot be read for sure: ${syntax.flaw}.`)
      // For bash `((` may be two subshells, and a backslash begins a word also after a line. For the grammar neither is so.
      script(text.replace(/\((?=\()/g, '( ').replace(/\n\\(?=\w)/g, '\n'))
      for (const piece of syntax.unread) for (const inner of substitutionsIn(piece)) script(inner)
      for (const part of partsOf(text)) if (part !== text) where.mention(part)
    }
    mentionsIn(syntax, where)
    judgeScript(syntax, where)
    return isPlain(syntax)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    unread(`The command cannot be read: ${reason}.`)
    if (where.isMention) where.doubt()
    return false
  }
}

const PARTS_MAX = 200

/** Pieces of a text that cannot be read whole: each may be a command alone. */
function partsOf(text: string): readonly string[] {
  return text.split(/[\n;|&`(){}]+|\$\(/, PARTS_MAX).filter((part) => /\S/.test(part))
}

/** What stands in the substitutions of such a text, each to its own end as far as parentheses tell it. */
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
  // Within double quotes a shell still expands.
  string: /^[^$`\\!\n]*$/,
  raw_string: /^[^\n]*$/,
  // Unquoted it would set a variable.
  command_name: /^[^=]*$/,
}

function isPlain({ text, nodes, flaw }: Syntax): boolean {
  if (flaw !== null || nodes.filter(({ type }) => type === 'command').length !== 1) return false
  if (/^[ \t]*[\n]|\n[ \t]*$/.test(text)) return false
  return nodes.every(({ type, start, end }) => {
    return PLAIN_TYPES.has(type) && (PLAIN_TEXT[type]?.test(text.slice(start, end)) ?? true)
  })
}
