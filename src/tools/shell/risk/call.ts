// One call: a program with its words, seen through the programs that only run another one. It finds the texts a shell will run.
import { gitCall, gitScripts } from './git.ts'
import type { Findings } from './level.ts'
import { isProtected, isSecret } from './risky-paths.ts'
import { judgeProgram } from './programs.ts'
import { onlyReads, systemName } from './safe.ts'
import { plainWord, type Word } from './words.ts'
import { unwrap, WRAPPERS } from './wrappers.ts'

/** Where the findings go, and the texts that a shell will run, which are judged like the command itself. */
export type Case = { readonly findings: Findings; readonly script: (text: string) => void }

/** How a program would get its standard input, as far as the text of the command says so. */
export type Stdin = 'inherited' | 'file' | 'pipe'

export type Call = {
  readonly words: readonly Word[]
  /** Asked only for programs that run what they read. It hands texts that stand in the command to the case. */
  readonly stdin: () => Stdin
}

const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'mksh', 'ash', 'rbash', 'fish', 'csh', 'tcsh'])
const INTERPRETERS = /^(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|tclsh|osascript|pwsh)[\d.]*$/

/** Variables that make other programs run something. */
const HIJACKS = [
  /^(LD|DYLD)_\w+$/,
  /^(BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|PROMPT_COMMAND|PS[0-4]|GCONV_PATH|LESSOPEN|LESSCLOSE)$/,
  /^GIT_(SSH|SSH_COMMAND|EXTERNAL_DIFF|EDITOR|SEQUENCE_EDITOR|ASKPASS|PROXY_COMMAND|EXEC_PATH|TEMPLATE_DIR|CONFIG.*)$/,
  /^(SSH_ASKPASS|PYTHONSTARTUP|PERL5(OPT|DB)|RUBYOPT|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS)$/,
]
/** Variables that change how things look, and nothing else. */
const LOOKS = /^(LC_\w+|LANG|LANGUAGE|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|TERM|COLUMNS|LINES)$/

export function judgeAssignment(name: string, findings: Findings): void {
  if (HIJACKS.some((rule) => rule.test(name))) findings.note('needs_approval', `${name} makes programs run others.`)
  else if (!LOOKS.test(name)) findings.note('bounded_write', `${name} is set.`)
}

export function judgeCall({ words, stdin }: Call, where: Case): void {
  const { findings } = where
  for (const word of words) {
    if (isSecret(word)) findings.note('needs_approval', `It names ${word.text}, which holds secrets.`)
  }
  // A list and no recursion: how many programs run one another is the caller's to choose.
  const open: (readonly Word[])[] = [words]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const program = unwrapped(next, where)
    const [named, ...args] = program
    if (named === undefined) continue
    if (named.computed || named.pattern) {
      findings.note('needs_approval', 'The name of the program is only known when it runs.')
      continue
    }
    judgeLast(named, { args, stdin, ...where })
    if (nameOf(named) === 'find') for (const call of executed(args)) open.push(call)
  }
}

function nameOf(program: Word): string {
  return program.text.slice(program.text.lastIndexOf('/') + 1).toLowerCase()
}

/** The words of the program that is run in the end. */
function unwrapped(words: readonly Word[], { findings, script }: Case): readonly Word[] {
  const added: Word[] = []
  for (let at = 0; ; ) {
    const program = words[at]
    const name = program === undefined || program.computed ? '' : nameOf(program)
    const wrapper = WRAPPERS.get(name)
    const isLast = at + 1 === words.length || (name === 'command' && /^-[vV]/.test(words[at + 1]?.text ?? ''))
    if (program === undefined || wrapper === undefined || isLast) return [...words.slice(at), ...added]
    const inner = unwrap(wrapper, words, at + 1)
    findings.note(wrapper.level, `${name} ${wrapper.why}.`)
    if (systemName(program.text) !== name) findings.note('bounded_write', `${program.text} is a file of somebody.`)
    // The program of this name, unlike the keyword, can write its figures to a file.
    if (name === 'time' && /^-(?!p$)/.test(words[at + 1]?.text ?? '')) findings.note('bounded_write', 'time may write.')
    for (const word of inner.scripts) runText(word, name, { findings, script })
    for (const { text } of inner.assigned) judgeAssignment((text.match(/^\w+/) ?? [''])[0], findings)
    at = inner.at
    // What it reads becomes arguments that cannot be seen here.
    if (name === 'xargs' || name === 'parallel') added.push(plainWord('\0'))
    if (name !== 'watch' && name !== 'parallel') continue
    for (const word of [joined(words.slice(at)), ...words.slice(at)]) runText(word, name, { findings, script })
  }
}

function runText(word: Word, why: string, { findings, script }: Case): void {
  if (word.computed) findings.note('needs_approval', `${why} runs text that is only known when it runs.`)
  script(word.text.replaceAll('\0', ' '))
}

type Last = Case & { readonly args: readonly Word[]; readonly stdin: () => Stdin }

function judgeLast(program: Word, last: Last): void {
  const { args, findings } = last
  const name = nameOf(program)
  for (const { level, reason } of judgeProgram(name, args)) findings.note(level, `${reason}.`)
  if (SHELLS.has(name)) judgeShell(name, last)
  else if (INTERPRETERS.test(name)) judgeInterpreter(name, last)
  else if (name === 'eval') runText(joined(args), name, last)
  else if (name === 'source' || name === '.') judgeSource(args, findings)
  else if (name === 'trap' && args[0]) runText(args[0], name, last)
  else if (name === 'alias')
    for (const word of args) runText({ ...word, text: word.text.replace(/^[^=]*=/, '') }, name, last)
  else if (name === 'git') for (const word of gitScripts(gitCall(args))) runText(word, name, last)
  const reads = onlyReads(program.text, args)
  if (!reads) findings.note('bounded_write', `${program.text || "''"} may write.`)
  // What is written relative to such a folder names it no more.
  if (reads && !/^(cd|pushd)$/.test(name)) return
  const named = args.find(isProtected)
  if (named) findings.note('needs_approval', `${name} names ${named.text}, which other programs obey.`)
}

function joined(words: readonly Word[]): Word {
  return plainWord(words.map(({ text }) => text).join(' '))
}

/** Each `-exec` of find to its end, or to the `-exec` of a find in it. */
function executed(args: readonly Word[]): readonly (readonly Word[])[] {
  const found: Word[][] = []
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

/** `bash -c text`, `bash file`, or bash reading its standard input. */
function judgeShell(name: string, last: Last): void {
  const { args, findings } = last
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? plainWord('')
    if (/^-[a-zA-Z]*c/.test(word.text)) {
      const text = args.slice(at + 1).find((next) => !/^[-+]/.test(next.text))
      if (text) runText(text, `${name} -c`, last)
      return
    }
    if (/^-[a-zA-Z]*s/.test(word.text) || /^(-|\/dev\/stdin|\/dev\/fd\/\d+)$/.test(word.text)) break
    if (/^([-+][oO]|--rcfile|--init-file)$/.test(word.text)) at++
    else if (!/^[-+]/.test(word.text)) {
      if (word.computed) findings.note('needs_approval', `${name} runs a file that is only known when it runs.`)
      return
    }
  }
  if (last.stdin() === 'pipe') findings.note('needs_approval', `${name} runs what is piped into it.`)
}

/** Without a file or a text to run it runs what it reads. */
function judgeInterpreter(name: string, { args, stdin, findings }: Last): void {
  const takesText = /^-[a-zA-Z]*[ceEpmrV]|^--(eval|print|version|help|test)/
  const reads = args.every(({ text }) => text === '-' || (text.startsWith('-') && !takesText.test(text)))
  if (reads && stdin() === 'pipe') findings.note('needs_approval', `${name} runs what is piped into it.`)
  if (args[0]?.computed) findings.note('needs_approval', `${name} runs what is only known when it runs.`)
}

function judgeSource([file]: readonly Word[], findings: Findings): void {
  if (file?.computed || file?.text.startsWith('/dev/')) {
    findings.note('needs_approval', 'source runs text that is only known when it runs.')
  }
}
