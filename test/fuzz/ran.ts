// Spellings of commands against a real bash: what the policy lets run is run, in an empty folder with recording programs on PATH, and
// no program runs that a rule denies or asks about, and none but the one that a rule allows.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { judgeCall, type Policy } from '../../src/tools/policy/policy.ts'
import { AS_CODE, AS_TEXT, BEFORE } from './shell.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, type Property, type Target } from './target.ts'

/** `text`: what the policy is shown of a command. */
type Subject = { readonly shown: (text: string) => string }

/** The program that a rule is about, as bash lets it be written. What no prelude defines is empty, and then another word is the first. */
const spellings = (name: string): readonly string[] => {
  const [a, b] = [name.slice(0, 3), name.slice(3)]
  const codes = Array.from(name).map((letter) => letter.charCodeAt(0))
  return [
    name,
    `${a}''${b}`,
    `"${name}"`,
    `'${a}'${b}`,
    `${a}\\${b}`,
    `\\${name}`,
    `${a}"${b}"`,
    `${a}$''${b}`,
    `$'${codes.map((code) => `\\x${code.toString(16)}`).join('')}'`,
    `$'${codes.map((code) => `\\${code.toString(8)}`).join('')}'`,
    `$'${codes.map((code) => `\\u${code.toString(16).padStart(4, '0')}`).join('')}'`,
    `\${z:-${name}}`,
    `\${z-${a}}${b}`,
    `\${z:=${name}}`,
    `$(echo ${name})`,
    `\`echo ${name}\``,
    `{${name},}`,
    `$(printf %s ${a} ${b})`,
    `${a}\\\n${b}`,
    `$(printf '%s' '${name}')`,
    `$(<list)`,
    `{${name},now}`,
    '$d',
    '"$d"',
    '${d}',
    '${d%x}',
    '${a[0]}',
    '"${a[@]}"',
    '${!r}',
    '${u,,}',
    '${d:0:9}',
    '${e/x/}',
    '$1',
    '$_',
    '${d@E}',
    '"${n}"',
    '${h[k]}',
    '${REPLY}',
    '${l[0]}',
    '${d@P}',
    '${d@Q}',
    '$i',
    '${w#x}',
  ]
}

const preludes = (name: string): readonly string[] => [
  `d=${name}`,
  `u=${name.toUpperCase()}`,
  `a=(${name} now)`,
  `d=${name}; r=d`,
  `e=${name}x`,
  `set -- ${name} now`,
  `: ${name}`,
  `read -r d <<< ${name}`,
  `read <<< ${name}`,
  `printf -v d %s ${name}`,
  `mapfile -t l <<< ${name}`,
  `declare -n n=d; d=${name}`,
  `declare -A h=([k]=${name})`,
  `f() { "$@"; }`,
  `alias d=${name}`,
  `w=x${name}`,
  `shopt -s expand_aliases; alias d=${name}`,
  `hash -p "$PATH/${name}" e`,
  `i=${name}`,
  `export d=${name}`,
  `echo ${name} > list`,
  `d=$(echo ${name})`,
  `IFS=x`,
  `enable -n echo`,
  `local d=${name}`,
  `for d in ${name}; do :; done`,
  `case ${name} in *) d=${name};; esac`,
  `trap '${name} now' EXIT`,
  `exec 3>&1`,
]

const ARGS = [
  'now',
  "n''ow",
  '"now"',
  '',
  '--force now',
  '$z now',
  '> out',
  '<<< now',
  '& wait',
  '| cat',
  '< /dev/null',
]
/** Where it may be only a word. No file is made and then run: what a file runs is what no rule sees. */
const INNOCENT = [
  (text: string) => `echo ${text}`,
  (text: string) => `: ${text}`,
  (text: string) => `x=(${text})`,
  (text: string) => `true # ${text}`,
  (text: string) => `[[ x == y ]] && ${text}`,
  (text: string) => `false && ${text}`,
  (text: string) => `test ${text.split(/\s/)[0] ?? ''} = x`,
  (text: string) => `cat <<'EOF'\n${text}\nEOF`,
  (text: string) => `build ${text}`,
  (text: string) => `f ${text}`,
  (text: string) => `command -v ${text}`,
  (text: string) => `type ${text}`,
  (text: string) => `x${text}`,
  (text: string) => `eval ${text}`,
  (text: string) => `builtin ${text}`,
  (text: string) => `env -i "PATH=$PATH" ${text}`,
  (text: string) => `xargs -n 1 ${text}`,
  (text: string) => `echo ${text} | xargs -n 9 env`,
  (text: string) => `echo ${text} | bash -s`,
]

function commandText(tape: Tape): string {
  const name = tape.pick(['deploy', 'deploy', 'deploy', 'build'])
  const word = tape.chance(3) ? name : tape.pick(spellings(name))
  let text = `${tape.pick(tape.chance(2) ? BEFORE : [''])}${word} ${tape.pick(ARGS)}`
  if (tape.chance(2)) text = tape.pick(INNOCENT)(text)
  if (tape.chance(2)) text = `${tape.pick(preludes(name))}${tape.pick(['; ', '\n', ' && '])}${text}`
  if (tape.chance(2)) text = tape.pick(tape.chance(3) ? AS_TEXT : AS_CODE)(text)
  return text
}

const LINKED = 'bash sh cat env timeout nice nohup xargs find stdbuf setsid printf sed tr head'.split(' ')
const RECORDED = ['deploy', 'build', 'DEPLOY']
const RUN_MS = 5_000

/** An empty folder, and a PATH with recording programs and a few real ones. */
class Place {
  readonly #root = mkdtempSync(join(tmpdir(), 'terret-ran-'))
  readonly #bin = join(this.#root, 'bin')
  readonly #record = join(this.#root, 'record')

  constructor() {
    mkdirSync(this.#bin)
    for (const name of RECORDED)
      writeFileSync(join(this.#bin, name), `#!/bin/sh\necho "$(basename "$0") $*" >> '${this.#record}'\n`, {
        mode: 0o755,
      })
    for (const name of [...LINKED, 'basename'])
      for (const folder of ['/bin', '/usr/bin'])
        if (existsSync(join(folder, name)) && !existsSync(join(this.#bin, name)))
          symlinkSync(join(folder, name), join(this.#bin, name))
  }

  /** The recorded programs that ran, each with its arguments. */
  run(text: string): readonly string[] {
    const work = mkdtempSync(join(this.#root, 'work-'))
    rmSync(this.#record, { force: true })
    const env = { PATH: this.#bin, HOME: work, TMPDIR: work }
    const limits = { timeout: RUN_MS, killSignal: 'SIGKILL', maxBuffer: 1_000_000 } as const
    // What it leaves running holds its output, so that is waited for.
    spawnSync('/bin/bash', ['--norc', '--noprofile', '-c', text], { cwd: work, env, input: '', ...limits })
    rmSync(work, { recursive: true, force: true })
    return existsSync(this.#record) ? readFileSync(this.#record, 'utf8').trim().split('\n') : []
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true })
  }
}

const DENIES: Policy = { rules: [{ effect: 'deny', tool: 'bash', command: 'deploy *' }] }
const ASKS: Policy = { rules: [{ effect: 'ask', tool: 'bash', command: 'deploy *' }] }
const ALLOWS: Policy = { rules: [{ effect: 'allow', tool: 'bash', command: 'build *' }] }

async function isLetThrough(policy: Policy, command: string, approval: 'auto' | 'ask'): Promise<boolean> {
  return (await judgeCall(policy, { tool: 'bash', args: { command }, approval })).type === 'allow'
}

async function check(place: Place, { shown }: Subject, text: string): Promise<void> {
  const seen = shown(text)
  const [denies, asks, allows] = [
    await isLetThrough(DENIES, seen, 'auto'),
    await isLetThrough(ASKS, seen, 'auto'),
    await isLetThrough(ALLOWS, seen, 'ask'),
  ]
  // What nobody lets through does not run, here neither.
  if (!denies && !asks && !allows) return
  const ran = place.run(text)
  const deployed = ran.find((line) => line.startsWith('deploy'))
  hold(!(denies && deployed), () => `${JSON.stringify(text)} is not denied, and ran: ${deployed}`)
  hold(!(asks && deployed), () => `${JSON.stringify(text)} is not asked about, and ran: ${deployed}`)
  const other = ran.find((line) => !line.startsWith('build'))
  hold(!(allows && other), () => `${JSON.stringify(text)} is allowed as build, and ran: ${other}`)
}

function open(subject: Subject): () => Property {
  return () => {
    const place = new Place()
    return {
      property: fc.asyncProperty(drawn(commandText, 24), (text) => check(place, subject, text)),
      close: () => place.remove(),
    }
  }
}

const planted: Readonly<Record<string, Subject>> = {
  'only the first command is looked at': { shown: (text) => text.split(/[;&|\n]/)[0] ?? '' },
  'quotes are taken for letters': { shown: (text) => text.replace(/['"\\$`{}]/g, '_') },
  'what is substituted is not looked at': { shown: (text) => text.replace(/\$\([^)]*\)|`[^`]*`/g, 'x') },
  'what comes after a word that runs programs is not looked at': {
    shown: (text) => text.replace(/\b(?:env|nice|timeout|xargs|eval|exec|sh|bash|find)\b[^]*/, 'true'),
  },
}

export const ran: Target = {
  name: 'ran',
  every: 10,
  open: open({ shown: (text) => text }),
  planted: Object.entries(planted).map(([name, subject]) => ({ name, open: open(subject) })),
}
