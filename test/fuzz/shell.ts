// A marked command within random layers of bash: the reader of shell lists it, or says that it could not read the text whole. And what
// would stop the machine is never taken for harmless.
import { readShell, type ShellReading } from '../../src/tools/shell/risk/read-shell.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Reader = (text: string) => Promise<ShellReading>
type Case = { readonly text: string; readonly layers: number }

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Where the text stands as code. A line break after it ends what it may leave open, such as a comment. */
export const AS_CODE: readonly ((text: string) => string)[] = [
  (text) => `true; ${text}`,
  (text) => `false || ${text}`,
  (text) => `(${text}\n)`,
  (text) => `{ ${text}\n}`,
  (text) => `! ! ${text}`,
  (text) => `if ${text}\nthen :; fi`,
  (text) => `while ${text}\ndo break; done`,
  (text) => `for i in 1; do ${text}\ndone`,
  (text) => `case x in x) ${text}\n;; esac`,
  (text) => `f() { ${text}\n}; f`,
  (text) => `x=$(${text}\n)`,
  (text) => `echo "$(${text}\n)"`,
  (text) => `cat <(${text}\n)`,
  (text) => `cat < <(${text}\n)`,
  (text) => `echo x > >(${text}\n)`,
  (text) => `cat <<< $(${text}\n)`,
  (text) => `echo x > "x$(${text}\n)"`,
  (text) => `a[$(${text}\n)]=1`,
  (text) => `echo \${a[$(${text}\n)]}`,
  (text) => `echo \${x:-$(${text}\n)}`,
  (text) => `x=a; echo \${x#$(${text}\n)}`,
  (text) => `echo $(( $(${text}\n) + 0 ))`,
  (text) => `[[ -n $(${text}\n) ]]`,
  (text) => `case $(${text}\n) in *) ;; esac`,
  (text) => `cat <<EOF\n$(${text}\n)\nEOF`,
  (text) => `cat <<-EOF\n\t$(${text}\n)\n\tEOF`,
  (text) => `export X=$(${text}\n)`,
]
/** Where the text stands as a quoted word. */
export const AS_TEXT: readonly ((text: string) => string)[] = [
  (text) => `sh -c ${quoted(text)}`,
  (text) => `bash -ec ${quoted(text)}`,
  (text) => `eval ${quoted(text)}`,
  (text) => `trap -- ${quoted(text)} EXIT`,
  (text) => `bash <<< ${quoted(text)}`,
  (text) => `find . -maxdepth 0 -exec sh -c ${quoted(text)} \\;`,
  (text) => `echo ${quoted(text)} | sh`,
  (text) => `. <(echo ${quoted(text)})`,
  (text) => `timeout 5 env X=1 nice -n 3 sh -c ${quoted(text)}`,
  (text) => `test -v ${quoted(`a[$(${text}\n)]`)}`,
  (text) => `bash <<'END'\n${text}\nEND`,
]
/** Before the words of the command. */
export const BEFORE = [
  '',
  'env ',
  "env -S'X=1' ",
  'command ',
  'exec ',
  'time ',
  '! ! ',
  'nohup ',
  'timeout -s KILL 5 ',
  'stdbuf -oL ',
  'setsid -w ',
  'sudo -u me ',
  'busybox ',
  'coproc ',
  'xargs ',
  'X=1 ',
]

function layered(tape: Tape): Case {
  let text = `${tape.pick(BEFORE)}shutdown now`
  const layers = tape.below(5)
  for (let i = 0; i < layers; i++) text = tape.pick(tape.chance(3) ? AS_TEXT : AS_CODE)(text)
  return { text, layers }
}

const real: Reader = (text) => readShell(text, { mentions: true })

export const shellReader = target<Reader, Case>({
  name: 'shell',
  real,
  cases: drawn(layered, 16),
  planted: {
    'here-documents are not read': (text) => real(text.replace(/<<-?'?(E\w+)[^]*?\n\t?\1/g, '')),
    'what cannot be read counts as read': async (text) => ({ ...(await real(text)), whole: true, runs: [] }),
    'only the first word is a program': async (text) => {
      const reading = await real(text)
      return { ...reading, runs: reading.runs.slice(0, 1).map((run) => ({ ...run, words: run.words.slice(0, 1) })) }
    },
  },
  check: async (read, { text }) => {
    const { runs, whole, risk } = await read(text)
    const listed = runs.some(({ words }) =>
      words.some((word, i) => /^(-S)?shutdown$/.test(word.text) && words[i + 1]?.text === 'now'),
    )
    hold(listed || !whole, () => `${JSON.stringify(text)} is read whole, and the command is not in it`)
    const seen = risk.level === 'blocked' || risk.level === 'needs_approval'
    hold(seen, () => `${JSON.stringify(text)} is ${risk.level}`)
  },
})
