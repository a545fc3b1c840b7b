// A table of programs that run another program given in their arguments: how many words to skip to reach it.
import type { RiskLevel } from './risk-level.ts'
import type { ShellWord } from './shell-words.ts'

export type Wrapper = {
  readonly level: RiskLevel
  readonly why: string
  /** Options that take the next word as their value: letters, and long names. */
  readonly valued: string
  readonly valuedLong: readonly string[]
  /** Options whose value is itself a shell text. */
  readonly script: string
  readonly scriptLong: readonly string[]
  /** The number of operands before the program. */
  readonly operands: number
  /** `NAME=value` may stand before the program. */
  readonly assigns: boolean
}

function makeWrapper(level: RiskLevel, why: string, more: Partial<Wrapper> = {}): Wrapper {
  return { level, why, valued: '', valuedLong: [], script: '', scriptLong: [], operands: 0, assigns: false, ...more }
}

const userWrapper = (more: Partial<Wrapper>) => makeWrapper('needs_approval', 'runs as another user', more)
const lastingWrapper = (more: Partial<Wrapper> = {}) =>
  makeWrapper('needs_approval', 'starts a process that may outlive the call', more)
const plainWrapper = (more: Partial<Wrapper> = {}) => makeWrapper('safe_read', 'runs another program', more)
const boundedWrapper = (more: Partial<Wrapper> = {}) => makeWrapper('bounded_write', 'runs another program', more)
const namespaceWrapper = (more: Partial<Wrapper>) =>
  makeWrapper('needs_approval', 'runs a program in another namespace', more)

const SUDO_LONG = ['--user', '--group', '--host', '--prompt', '--chdir', '--chroot', '--role', '--type', '--close-from']

export const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map([
  ['sudo', userWrapper({ valued: 'ugCpDRrtThU', valuedLong: SUDO_LONG, assigns: true })],
  ['doas', userWrapper({ valued: 'uC' })],
  ['su', userWrapper({ valued: 'gGsw', script: 'c', scriptLong: ['--command'], operands: 1 })],
  ['runuser', userWrapper({ valued: 'ugGsw', script: 'c', scriptLong: ['--command'] })],
  ['pkexec', userWrapper({ valuedLong: ['--user'] })],
  [
    'env',
    plainWrapper({
      valued: 'uC',
      valuedLong: ['--unset', '--chdir'],
      script: 'S',
      scriptLong: ['--split-string'],
      assigns: true,
    }),
  ],
  ['command', plainWrapper()],
  ['builtin', plainWrapper()],
  ['exec', boundedWrapper({ valued: 'a' })],
  ['time', plainWrapper({ assigns: true, valued: 'fo', valuedLong: ['--format', '--output'] })],
  ['nice', plainWrapper({ valued: 'n', valuedLong: ['--adjustment'] })],
  ['ionice', plainWrapper({ valued: 'cnpPu', valuedLong: ['--class', '--classdata'] })],
  ['chrt', boundedWrapper({ valued: 'TPD', operands: 1 })],
  ['taskset', boundedWrapper({ operands: 1 })],
  ['timeout', plainWrapper({ valued: 'ks', valuedLong: ['--kill-after', '--signal'], operands: 1 })],
  ['stdbuf', plainWrapper({ valued: 'ioe', valuedLong: ['--input', '--output', '--error'] })],
  [
    'xargs',
    boundedWrapper({
      valued: 'adEILnPsd',
      valuedLong: ['--arg-file', '--delimiter', '--max-args', '--max-procs', '--max-chars'],
    }),
  ],
  ['parallel', boundedWrapper({ valued: 'jaNn', valuedLong: ['--jobs', '--arg-file'] })],
  ['nohup', lastingWrapper()],
  ['setsid', lastingWrapper()],
  ['coproc', lastingWrapper({ assigns: true })],
  // The grammar takes these for programs behind `time`, `coproc` and a second `!`. No program has such a name.
  ...['{', '!', 'if', 'then', 'else', 'elif', 'while', 'until', 'do'].map(
    (name) => [name, plainWrapper({ assigns: true })] as const,
  ),
  ['daemonize', lastingWrapper({ valued: 'acepolu' })],
  ['strace', boundedWrapper({ valued: 'aeoOpsSuEPIb' })],
  ['ltrace', boundedWrapper({ valued: 'aeoplsuDn' })],
  ['watch', boundedWrapper({ valued: 'n', valuedLong: ['--interval'] })],
  [
    'flock',
    boundedWrapper({ valued: 'wE', valuedLong: ['--timeout'], script: 'c', scriptLong: ['--command'], operands: 1 }),
  ],
  ['script', boundedWrapper({ valued: 'EIOBTmo', script: 'c', scriptLong: ['--command'], operands: 1 })],
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
  ].map((name) => [name, boundedWrapper(name === 'choom' ? { valued: 'np' } : {})] as const),
  ['prlimit', boundedWrapper()],
  ['setpriv', userWrapper({ valuedLong: ['--reuid', '--regid', '--groups', '--pdeathsig'] })],
  ['dumb-init', boundedWrapper()],
  ['faketime', boundedWrapper({ valued: 'f', operands: 1 })],
  [
    'hyperfine',
    boundedWrapper({ valued: 'wrmMspSN', script: 'pc', scriptLong: ['--prepare', '--cleanup', '--setup'] }),
  ],
  [
    'systemd-run',
    lastingWrapper({ valued: 'pEtuGH', valuedLong: ['--property', '--unit', '--uid', '--gid', '--slice'] }),
  ],
  ['ssh-agent', boundedWrapper({ valued: 'aEtPO' })],
  ['busybox', boundedWrapper()],
  ['toybox', boundedWrapper()],
  ['chroot', namespaceWrapper({ valuedLong: ['--userspec', '--groups'], operands: 1 })],
  ['unshare', namespaceWrapper({ valued: 'SGRw', valuedLong: ['--setuid', '--setgid', '--root', '--wd'] })],
  ['nsenter', namespaceWrapper({ valued: 'tSG', valuedLong: ['--target', '--setuid', '--setgid'] })],
  ['bwrap', namespaceWrapper({})],
])

export type UnwrapResult = {
  /** The position of the program. */
  readonly at: number
  readonly scripts: readonly ShellWord[]
  readonly assigned: readonly ShellWord[]
}

/** Skips the wrapper's own words, from `start` on. Unknown options are taken without a value. */
export function unwrapProgram(wrapper: Wrapper, words: readonly ShellWord[], start: number): UnwrapResult {
  const scripts: ShellWord[] = []
  const assigned: ShellWord[] = []
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
      at += readCluster(wrapper, word, words[at + 1], scripts)
    } else if (wrapper.assigns && /^\w+(\[.*\])?\+?=/.test(word.text)) assigned.push(word)
    else if (operands > 0) operands--
    else break
  }
  return { at, scripts, assigned }
}

function abbreviates(given: string, names: readonly string[]): boolean {
  return given.length > 2 && names.some((name) => name.startsWith(given))
}

/**
 * `-xyzVALUE`: the first letter with a value takes the rest of the word, or the next word. Returns the number of
 * further words taken.
 */
function readCluster(wrapper: Wrapper, word: ShellWord, next: ShellWord | undefined, scripts: ShellWord[]): number {
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
