// Programs that run another program given in their arguments, as a table: what to skip to get to it.
import type { Level } from './level.ts'
import type { Word } from './words.ts'

export type Wrapper = {
  readonly level: Level
  readonly why: string
  /** Options that take the next word as their value: letters, and long names. */
  readonly valued: string
  readonly valuedLong: readonly string[]
  /** Options whose value is itself a shell text. */
  readonly script: string
  readonly scriptLong: readonly string[]
  /** How many operands stand before the program. */
  readonly operands: number
  /** `NAME=value` may stand before the program. */
  readonly assigns: boolean
}

function wrapper(level: Level, why: string, more: Partial<Wrapper> = {}): Wrapper {
  return { level, why, valued: '', valuedLong: [], script: '', scriptLong: [], operands: 0, assigns: false, ...more }
}

const root = (more: Partial<Wrapper>) => wrapper('needs_approval', 'runs as another user', more)
const lasting = (more: Partial<Wrapper> = {}) =>
  wrapper('needs_approval', 'starts a process that may outlive the call', more)
const plain = (more: Partial<Wrapper> = {}) => wrapper('safe_read', 'runs another program', more)
const other = (more: Partial<Wrapper> = {}) => wrapper('bounded_write', 'runs another program', more)
const space = (more: Partial<Wrapper>) => wrapper('needs_approval', 'runs a program in another namespace', more)

const SUDO_LONG = ['--user', '--group', '--host', '--prompt', '--chdir', '--chroot', '--role', '--type', '--close-from']

export const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map([
  ['sudo', root({ valued: 'ugCpDRrtThU', valuedLong: SUDO_LONG, assigns: true })],
  ['doas', root({ valued: 'uC' })],
  ['su', root({ valued: 'gGsw', script: 'c', scriptLong: ['--command'], operands: 1 })],
  ['runuser', root({ valued: 'ugGsw', script: 'c', scriptLong: ['--command'] })],
  ['pkexec', root({ valuedLong: ['--user'] })],
  [
    'env',
    plain({
      valued: 'uC',
      valuedLong: ['--unset', '--chdir'],
      script: 'S',
      scriptLong: ['--split-string'],
      assigns: true,
    }),
  ],
  ['command', plain()],
  ['builtin', plain()],
  ['exec', other({ valued: 'a' })],
  ['time', plain({ assigns: true, valued: 'fo', valuedLong: ['--format', '--output'] })],
  ['nice', plain({ valued: 'n', valuedLong: ['--adjustment'] })],
  ['ionice', plain({ valued: 'cnpPu', valuedLong: ['--class', '--classdata'] })],
  ['chrt', other({ valued: 'TPD', operands: 1 })],
  ['taskset', other({ operands: 1 })],
  ['timeout', plain({ valued: 'ks', valuedLong: ['--kill-after', '--signal'], operands: 1 })],
  ['stdbuf', plain({ valued: 'ioe', valuedLong: ['--input', '--output', '--error'] })],
  [
    'xargs',
    other({
      valued: 'adEILnPsd',
      valuedLong: ['--arg-file', '--delimiter', '--max-args', '--max-procs', '--max-chars'],
    }),
  ],
  ['parallel', other({ valued: 'jaNn', valuedLong: ['--jobs', '--arg-file'] })],
  ['nohup', lasting()],
  ['setsid', lasting()],
  ['coproc', lasting({ assigns: true })],
  // The grammar takes these for programs behind `time`, `coproc` and a second `!`. No program has such a name.
  ...['{', '!', 'if', 'then', 'else', 'elif', 'while', 'until', 'do'].map(
    (name) => [name, plain({ assigns: true })] as const,
  ),
  ['daemonize', lasting({ valued: 'acepolu' })],
  ['strace', other({ valued: 'aeoOpsSuEPIb' })],
  ['ltrace', other({ valued: 'aeoplsuDn' })],
  ['watch', other({ valued: 'n', valuedLong: ['--interval'] })],
  ['flock', other({ valued: 'wE', valuedLong: ['--timeout'], script: 'c', scriptLong: ['--command'], operands: 1 })],
  ['script', other({ valued: 'EIOBTmo', script: 'c', scriptLong: ['--command'], operands: 1 })],
  ...[
    'fakeroot',
    'unbuffer',
    'rlwrap',
    'xvfb-run',
    'setarch',
    'x86_64',
    'i386',
    'linux32',
    'linux64',
    'numactl',
    'choom',
    'tini',
  ].map((name) => [name, other(name === 'choom' ? { valued: 'np' } : {})] as const),
  ['prlimit', other()],
  ['setpriv', root({ valuedLong: ['--reuid', '--regid', '--groups', '--pdeathsig'] })],
  ['dumb-init', other()],
  ['faketime', other({ valued: 'f', operands: 1 })],
  ['hyperfine', other({ valued: 'wrmMspSN', script: 'pc', scriptLong: ['--prepare', '--cleanup', '--setup'] })],
  ['systemd-run', lasting({ valued: 'pEtuGH', valuedLong: ['--property', '--unit', '--uid', '--gid', '--slice'] })],
  ['ssh-agent', other({ valued: 'aEtPO' })],
  ['busybox', other()],
  ['toybox', other()],
  ['chroot', space({ valuedLong: ['--userspec', '--groups'], operands: 1 })],
  ['unshare', space({ valued: 'SGRw', valuedLong: ['--setuid', '--setgid', '--root', '--wd'] })],
  ['nsenter', space({ valued: 'tSG', valuedLong: ['--target', '--setuid', '--setgid'] })],
  ['bwrap', space({})],
])

export type Unwrapped = {
  /** Where the program stands. */
  readonly at: number
  readonly scripts: readonly Word[]
  readonly assigned: readonly Word[]
}

/** What is left when the wrapper's own words, from `start` on, are taken away. Options it does not know stand alone. */
export function unwrap(wrapper: Wrapper, words: readonly Word[], start: number): Unwrapped {
  const scripts: Word[] = []
  const assigned: Word[] = []
  let { operands } = wrapper
  let at = start
  for (let word = words[at]; word !== undefined; word = words[++at]) {
    if (/^--?$/.test(word.text)) continue
    if (word.text.startsWith('--')) {
      const [name = '', value] = word.text.split(/=([^]*)/)
      const isScript = abbreviates(name, wrapper.scriptLong)
      if (isScript && value !== undefined) scripts.push({ ...word, text: value })
      else if (isScript) scripts.push(...words.slice(++at, at + 1))
      else if (value === undefined && abbreviates(name, wrapper.valuedLong)) at++
    } else if (word.text.startsWith('-')) {
      at += cluster(wrapper, word, words[at + 1], scripts)
    } else if (wrapper.assigns && /^\w+(\[.*\])?\+?=/.test(word.text)) assigned.push(word)
    else if (operands > 0) operands--
    else break
  }
  return { at, scripts, assigned }
}

function abbreviates(given: string, names: readonly string[]): boolean {
  return given.length > 2 && names.some((name) => name.startsWith(given))
}

/** `-xyzVALUE`: the first letter with a value takes the rest of the word, or the next one. How many words it took beside its own. */
function cluster(wrapper: Wrapper, word: Word, next: Word | undefined, scripts: Word[]): number {
  for (let i = 1; i < word.text.length; i++) {
    const letter = word.text.charAt(i)
    const isScript = wrapper.script.includes(letter)
    if (!isScript && !wrapper.valued.includes(letter)) continue
    const rest = word.text.slice(i + 1)
    if (isScript && rest !== '') scripts.push({ ...word, text: rest })
    else if (isScript && next) scripts.push(next)
    return rest === '' ? 1 : 0
  }
  return 0
}
