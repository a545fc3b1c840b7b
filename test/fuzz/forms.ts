// Commands that run `make deploy`, made of spellings and wrappers: a rule that denies it never lets one through.
import { judgeCall } from '../../src/tools/policy/policy.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Judge = (command: string) => Promise<string>
/** `plain`: its words stand in the text, in one layer. Then it is denied; otherwise it may be asked. */
type Case = { readonly text: string; readonly plain: boolean }

const SPELLINGS: readonly ((word: string) => string)[] = [
  (word) => word,
  (word) => `'${word}'`,
  (word) => `"${word}"`,
  (word) => `\\${word}`,
  (word) => `${word.slice(0, 2)}''${word.slice(2)}`,
  (word) => `$'${word}'`,
  (word) => `$"${word}"`,
  (word) => `$'\\x${word.charCodeAt(0).toString(16)}${word.slice(1)}'`,
  (word) => `${word.slice(0, 1)}\\\n${word.slice(1)}`,
]
const GAPS = [' ', '  ', '\t', ' \\\n ', ' >x ', ' 2>&1 ', ' </dev/null ']
const ENDS = ['', '>x', ' 2>&1', ';', ' &', '|cat', ' --fast', '</dev/null', ' # now']
const BEFORE = [
  '',
  '',
  'env ',
  'X=1 ',
  'command ',
  'sudo -u me ',
  '! ',
  'time ',
  'timeout 5 ',
  'nice -n 3 ',
  '>x ',
  'exec ',
]
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const AROUND: readonly ((text: string) => string)[] = [
  (text) => `true; ${text}`,
  (text) => `true&&${text}`,
  (text) => `(${text}\n)`,
  (text) => `{ ${text}\n}`,
  (text) => `if ${text}\nthen :; fi`,
  (text) => `x=$(${text}\n)`,
  (text) => `echo "$(${text}\n)"`,
  (text) => `f() { ${text}\n}; f`,
  (text) => `sh -c ${quoted(text)}`,
  (text) => `eval ${quoted(text)}`,
  (text) => `bash <<'END'\n${text}\nEND`,
  (text) => `cat <(${text}\n)`,
  (text) => `sh <<< ${quoted(text)}`,
]
/** The words are only known when it runs. */
const HIDDEN = [
  'make $(echo deploy)',
  'x=deploy; make $x',
  'x=make; $x deploy',
  'make {deploy,}',
  'echo deploy | xargs make',
  'echo bWFrZSBkZXBsb3k= | base64 -d | sh',
  'm${x}ake deploy',
  'make -C . deploy',
]

function form(tape: Tape): Case {
  const hidden = tape.chance(3)
  const spell = (word: string): string => tape.pick(SPELLINGS)(word)
  const own = `${tape.pick(BEFORE)}${spell('make')}${tape.pick(GAPS)}${spell('deploy')}${tape.pick(ENDS)}`
  const layers = tape.below(4)
  let text = hidden ? tape.pick(HIDDEN) : own
  for (let i = 0; i < layers; i++) text = tape.pick(AROUND)(text)
  return { text, plain: !hidden && layers === 0 }
}

const real: Judge = async (command) => {
  const rules = [{ effect: 'deny', command: 'make deploy *' }] as const
  return (await judgeCall({ rules }, { tool: 'bash', args: { command }, approval: 'auto' })).type
}

export const forms = target<Judge, Case>({
  name: 'forms',
  real,
  cases: drawn(form, 24),
  planted: {
    'words end at spaces alone': async (command) => (/\bmake\s+deploy(\s|$)/.test(command) ? 'deny' : 'allow'),
    'quotes are dropped and nothing else is read': async (command) =>
      /(^|[\s;&|(){}`])make\s+deploy([\s;&|(){}`]|$)/.test(command.replace(/["'\\]/g, '')) ? 'deny' : 'allow',
    'what is hidden is let through': async (command) => {
      const verdict = await real(command)
      return verdict === 'ask' ? 'allow' : verdict
    },
  },
  check: async (subject, { text, plain }) => {
    const verdict = await subject(text)
    hold(plain ? verdict === 'deny' : verdict !== 'allow', () => `${JSON.stringify(text)} is ${verdict}`)
  },
})
