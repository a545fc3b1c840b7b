// Judges one call: a program with its words, seen through programs that only run another one. It finds the texts that a
// shell will run. Syntax is walked in judge-script.ts.
import { parseGitCall, gitScripts } from './git-risk.ts'
import type { RiskFindings } from './risk-level.ts'
import { isProtected, isSecret } from './risky-paths.ts'
import { judgeProgram } from './risky-programs.ts'
import { onlyReads, systemName } from './read-only-programs.ts'
import { plainWord, UNKNOWN_PART, type ShellWord } from './shell-words.ts'
import { unwrapProgram, WRAPPERS } from './wrappers.ts'

/** The words of one call, and the positions of programs among them: `timeout 5 make` runs two, at 0 and at 2. */
export type ProgramRun = { readonly words: readonly ShellWord[]; readonly programs: readonly number[] }

/** Callbacks that report findings while one text is read. */
export type RiskReporter = {
  readonly findings: RiskFindings
  /** A text that a shell will run. It is read like the command itself. */
  readonly script: (text: string) => void
  readonly run: (run: ProgramRun) => void
  /** A text that is data for the shell, and that some program might still run. */
  readonly mention: (text: string) => void
  /** A program may run whose name is not in the text. */
  readonly doubt: () => void
}

/** The source of a program's standard input, and the texts of the command that would be in it. */
export type StdinSource = { readonly from: 'inherited' | 'file' | 'pipe'; readonly texts: readonly string[] }

export type ShellCall = {
  readonly words: readonly ShellWord[]
  /** Called only for programs that run their input. */
  readonly stdin: () => StdinSource
  /** The texts that substitutions in the words print. Called only for programs that run their words. */
  readonly printed: () => readonly string[]
}

const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'mksh', 'ash', 'rbash', 'fish', 'csh', 'tcsh'])
const INTERPRETERS = /^(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|tclsh|osascript|pwsh)[\d.]*$/

/** Behind `time`, `coproc` and a second `!` the grammar takes these for programs, and misreads the rest. */
const RESERVED = new Set('if then else elif fi for select while until do done case esac function'.split(' '))

/** Variables that make other programs run something. */
const HIJACKS = [
  /^(LD|DYLD)_\w+$/,
  /^(BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|PROMPT_COMMAND|PS[0-4]|GCONV_PATH|LESSOPEN|LESSCLOSE)$/,
  /^GIT_(SSH|SSH_COMMAND|EXTERNAL_DIFF|EDITOR|SEQUENCE_EDITOR|ASKPASS|PROXY_COMMAND|EXEC_PATH|TEMPLATE_DIR|CONFIG.*)$/,
  /^(SSH_ASKPASS|PYTHONSTARTUP|PERL5(OPT|DB)|RUBYOPT|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS)$/,
]
/** Variables that only change the appearance of output. */
const LOOKS = /^(LC_\w+|LANG|LANGUAGE|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|TERM|COLUMNS|LINES)$/

export function judgeAssignment(name: string, { findings, doubt }: RiskReporter): void {
  if (HIJACKS.some((rule) => rule.test(name))) {
    findings.note('needs_approval', `${name} makes programs run others.`)
    doubt()
  } else if (!LOOKS.test(name)) findings.note('bounded_write', `${name} is set.`)
}

export function judgeShellCall(call: ShellCall, where: RiskReporter): void {
  const { findings, doubt } = where
  for (const word of call.words) {
    if (isSecret(word)) findings.note('needs_approval', `It names ${word.text}, which holds secrets.`)
  }
  // A list instead of recursion: the caller chooses how many programs run one another.
  const open: (readonly ShellWord[])[] = [call.words]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const run = unwrapPrograms({ ...call, words: next }, where)
    if (run.words.length > 0) where.run(run)
    if (run.programs.some((at) => RESERVED.has(run.words[at]?.text ?? ''))) {
      findings.note(
        'needs_approval',
        'The command cannot be read for sure: a word of the grammar is in an unusual place.',
      )
      doubt()
    }
    const [named, ...args] = run.words.slice(run.programs.at(-1))
    if (named === undefined) continue
    if (programName(named).includes(UNKNOWN_PART) || named.pattern) doubt()
    if (named.computed || named.pattern) {
      findings.note('needs_approval', 'The name of the program is only known when it runs.')
      // The text that a substitution prints in place of the name is a command.
      for (const text of call.printed()) where.script(text)
      continue
    }
    judgeLastProgram(named, { ...call, args, ...where })
    const name = programName(named)
    if (name === 'find') for (const inner of findExecCommands(args)) open.push(inner)
    if (name === 'fd' || name === 'fdfind') for (const inner of fdExecCommands(args)) open.push(inner)
  }
}

function programName(program: ShellWord): string {
  return program.text.slice(program.text.lastIndexOf('/') + 1).toLowerCase()
}

/** Finds every program of the call: the first one, and those that it runs. */
function unwrapPrograms({ words: given, stdin, printed }: ShellCall, where: RiskReporter): ProgramRun {
  const { findings, script } = where
  const programs: number[] = []
  let words = given
  for (let at = 0; ; ) {
    const program = words[at]
    const name = program === undefined || program.computed ? '' : programName(program)
    const wrapper = WRAPPERS.get(name)
    if (program !== undefined) programs.push(at)
    // Its input becomes words that are unknown here.
    const takesInput = name === 'xargs' || name === 'parallel'
    const isFirst = takesInput && words === given
    if (isFirst) words = [...words, plainWord(UNKNOWN_PART)]
    const isLast = at + 1 === words.length || (name === 'command' && /^-[vV]/.test(words[at + 1]?.text ?? ''))
    if (program === undefined || wrapper === undefined || isLast) return { words, programs }
    const inner = unwrapProgram(wrapper, words, at + 1)
    findings.note(wrapper.level, `${name} ${wrapper.why}.`)
    if (systemName(program.text) !== name) findings.note('bounded_write', `${program.text} is a file of somebody.`)
    // The program of this name, unlike the keyword, can write its figures to a file.
    if (name === 'time' && /^-(?!p$)/.test(words[at + 1]?.text ?? '')) findings.note('bounded_write', 'time may write.')
    for (const word of inner.scripts) {
      // `env -S 'rm -r' x` runs `rm -r x`.
      const text =
        name === 'env' ? `env ${word.text.replaceAll('\\_', ' ')} ${quoteAll(words.slice(inner.at))}` : word.text
      runText({ ...word, text }, name, { ...where, printed })
    }
    for (const { text } of inner.assigned) judgeAssignment((text.match(/^\w+/) ?? [''])[0], where)
    if (isFirst) {
      const { texts } = stdin()
      const own = texts.length === 0 ? [] : words.slice(inner.at)
      for (const text of xargsCommands(words.slice(at + 1, inner.at), own, texts)) script(text)
    }
    at = inner.at
    // `coproc NAME { …; }`
    if (name === 'coproc' && words[at + 1]?.text === '{') at += 1
    if (name !== 'watch' && name !== 'parallel' && name !== 'hyperfine') continue
    for (const word of [joinWords(words.slice(at)), ...words.slice(at)]) runText(word, name, { ...where, printed })
  }
}

/** Further lines are left to the person who is asked about xargs. */
const FED_LINES_MAX = 100

/** The commands that xargs makes of texts in the command: each line replaces `-I`, or follows the other words. */
function xargsCommands(
  options: readonly ShellWord[],
  words: readonly ShellWord[],
  texts: readonly string[],
): readonly string[] {
  const given = options.map(({ text }) => text).join(' ')
  const [, place = given.includes('-i') || given.includes('--replace') ? '{}' : null] =
    /(?:^| )(?:-\w*I ?|-i|--replace=)(\S+)/.exec(given) ?? []
  // The last word stands for its input.
  const own = words.filter(({ text }) => text !== UNKNOWN_PART)
  if (own.length === 0) return []
  return texts
    .flatMap((text) => [text.replaceAll('\n', ' '), ...text.split('\n')])
    .slice(0, FED_LINES_MAX)
    .map((line) => {
      if (place !== null && own.some(({ text }) => text.includes(place)))
        return quoteAll(own.map((word) => ({ ...word, text: word.text.replaceAll(place, line) })))
      const more = line.split(/\s+/).filter((part) => part !== '')
      return quoteAll([...own, ...more.map((part) => plainWord(part.replace(/["'\\]/g, '')))])
    })
}

/** Quotes the words for a shell. Parts that are known only at run time stay unknown. */
function quoteAll(words: readonly ShellWord[]): string {
  return words
    .map(({ text }) =>
      text
        .split(UNKNOWN_PART)
        .map((part) => `'${part.replaceAll("'", "'\\''")}'`)
        .join('"$unknown"'),
    )
    .join(' ')
}

function runText(
  word: ShellWord,
  why: string,
  { findings, script, doubt, printed }: RiskReporter & Pick<ShellCall, 'printed'>,
): void {
  if (word.computed) {
    findings.note('needs_approval', `${why} runs text that is only known when it runs.`)
    doubt()
    for (const text of printed()) script(text)
  }
  script(word.text.replaceAll(UNKNOWN_PART, ' '))
}

type ProgramCall = RiskReporter & Pick<ShellCall, 'stdin' | 'printed'> & { readonly args: readonly ShellWord[] }

function judgeLastProgram(program: ShellWord, last: ProgramCall): void {
  const { args, findings } = last
  const name = programName(program)
  for (const { level, reason } of judgeProgram(name, args)) findings.note(level, `${reason}.`)
  judgeTexts(name, last)
  const reads = onlyReads(program.text, args)
  if (!reads) findings.note('bounded_write', `${program.text || "''"} may write.`)
  // After this, relative paths no longer name the folder.
  if (reads && !/^(cd|pushd)$/.test(name)) return
  const named = args.find(isProtected)
  if (named) findings.note('needs_approval', `${name} names ${named.text}, which other programs obey.`)
}

/** They give a program another name. */
const RENAMES = new Set(['alias', 'hash', 'enable'])
/** Builtins that take names of variables. Bash runs the commands in a subscript, even a quoted one. */
const TAKE_NAMES = new Set('test [ printf read unset let wait getopts mapfile readarray'.split(' '))
const AWK = /^[gmn]?awk$/
const AWK_RUNS = /system|getline|[|@]/
/** Matches the command `e` of sed, and the flag `e` of its `s`. */
const SED_RUNS = /(^|[;{}\n])\s*[\d,$]*\s*e(\s|$)|\/[gpiIm0-9]*e[gpiIm0-9]*\s*($|[;}\n])/

/** Judges programs that run texts among their arguments or in their input. */
function judgeTexts(name: string, last: ProgramCall): void {
  const { args, doubt } = last
  if (RENAMES.has(name)) doubt()
  if (SHELLS.has(name)) judgeShell(name, last)
  else if (INTERPRETERS.test(name)) judgeInterpreter(name, last)
  else if (name === 'eval') runText(joinWords(args), name, last)
  else if (name === 'source' || name === '.') judgeSource(last)
  else if (name === 'trap') for (const word of args) runText(word, name, last)
  else if (name === 'alias')
    for (const word of args) runText({ ...word, text: word.text.replace(/^[^=]*=/, '') }, name, last)
  else if (name === 'git') for (const word of gitScripts(parseGitCall(args))) runText(word, name, last)
  else if (TAKE_NAMES.has(name)) judgeSubscripts(args, last)
  else if (AWK.test(name) && args.some(({ text }) => AWK_RUNS.test(text))) doubt()
  else if (name === 'sed' && args.some(({ text }) => SED_RUNS.test(text))) doubt()
}

export function judgeSubscripts(args: readonly ShellWord[], { findings, script }: RiskReporter): void {
  for (const { text } of args) {
    if (!/\[[^]*[$`]/.test(text)) continue
    findings.note('bounded_write', 'A subscript may run a command.')
    // As in double quotes: what is expanded there is also expanded in a subscript.
    script(`: "${text.replaceAll('"', '')}"`)
  }
}

function joinWords(words: readonly ShellWord[]): ShellWord {
  return plainWord(words.map(({ text }) => text).join(' '))
}

/** The commands of each `-exec` of find, up to its end or to the `-exec` of a nested find. */
function findExecCommands(args: readonly ShellWord[]): readonly (readonly ShellWord[])[] {
  const found: ShellWord[][] = []
  let open = false
  for (const word of args) {
    if (/^-(exec|ok)(dir)?$/.test(word.text)) {
      open = true
      found.push([])
    } else if (/^[;+]$/.test(word.text)) open = false
    else if (open) found.at(-1)?.push(word)
  }
  return found
}

/** The command that fd runs for each file it finds. */
function fdExecCommands(args: readonly ShellWord[]): readonly (readonly ShellWord[])[] {
  const at = args.findIndex(({ text }) => /^(-[xX]|--exec(-batch)?)$/.test(text))
  return at < 0 ? [] : [args.slice(at + 1)]
}

/** Judges `bash -c text`, `bash file`, and bash that reads its standard input. */
function judgeShell(name: string, last: ProgramCall): void {
  const { args, findings, script, doubt } = last
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? plainWord('')
    if (/^-[a-zA-Z]*c/.test(word.text)) {
      const text = args.slice(at + 1).find((next) => !/^[-+]/.test(next.text))
      if (text) runText(text, `${name} -c`, last)
      return
    }
    if (/^--(version|help)$/.test(word.text)) return
    if (/^-[a-zA-Z]*s/.test(word.text) || STDIN_FILE.test(word.text)) break
    if (/^([-+][oO]|--rcfile|--init-file)$/.test(word.text)) {
      // An interactive shell runs this file first.
      if (word.text.startsWith('--')) runFile(args[++at], name, last)
      else at++
    } else if (!/^[-+]/.test(word.text)) return runFile(word, name, last)
  }
  const { from, texts } = last.stdin()
  for (const text of texts) script(text)
  doubt()
  if (from === 'pipe') findings.note('needs_approval', `${name} runs what is piped into it.`)
}

const STDIN_FILE = /^(-|\/dev\/stdin|\/dev\/fd\/\d+|\/proc\/self\/fd\/\d+)$/

/** A file name that is not in the text may be a substitution that prints commands. */
function runFile(file: ShellWord | undefined, name: string, { findings, script, doubt, printed }: ProgramCall): void {
  if (!file?.computed) return
  findings.note('needs_approval', `${name} runs a file that is only known when it runs.`)
  doubt()
  for (const text of printed()) script(text)
}

const TAKES_CODE = /^-[a-zA-Z]*[ceEpr]|^--(eval|print|exec)\b|^-$/

/** Without a file or a text to run, an interpreter runs its input. */
function judgeInterpreter(name: string, { args, stdin, findings, doubt }: ProgramCall): void {
  const takesText = /^-[a-zA-Z]*[ceEpmrV]|^--(eval|print|version|help|test)/
  const reads = args.every(({ text }) => text === '-' || (text.startsWith('-') && !takesText.test(text)))
  // Code in another language is not read here.
  if (reads || args.some(({ text }) => TAKES_CODE.test(text))) doubt()
  if (reads && stdin().from === 'pipe') findings.note('needs_approval', `${name} runs what is piped into it.`)
  if (args[0]?.computed) findings.note('needs_approval', `${name} runs what is only known when it runs.`)
}

function judgeSource({ args: [file], findings, script, doubt, stdin, printed }: ProgramCall): void {
  if (!file?.computed && !file?.text.startsWith('/dev/') && !STDIN_FILE.test(file?.text ?? '')) return
  findings.note('needs_approval', 'source runs text that is only known when it runs.')
  doubt()
  for (const text of [...printed(), ...stdin().texts]) script(text)
}
