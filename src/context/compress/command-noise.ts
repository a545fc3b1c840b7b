// Finds which program printed an output, and which of its lines mean nothing when all is well. Patterns look at the
// beginning of a line only.

export type CommandProgram = { readonly program: string; readonly verb: string }

const NONE: CommandProgram = { program: '', verb: '' }
const COMMAND_CHARS_MAX = 2_000
const PASSED_OVER = new Set([
  'sudo',
  'time',
  'npx',
  'env',
  'nice',
  'bunx',
  'exec',
  'command',
  'uv',
  'poetry',
  'run',
  '-m',
  'python',
  'python3',
])
/** Programs that print alike, by the name whose rules they share. */
const SAME: Readonly<Record<string, string>> = {
  yarn: 'npm',
  pnpm: 'npm',
  bun: 'npm',
  vitest: 'npm',
  jest: 'npm',
  mocha: 'npm',
  'vue-tsc': 'tsc',
  'py.test': 'pytest',
  oc: 'kubectl',
  k: 'kubectl',
}

/** The first program of a command line that has rules, else the first program: `cd app && npm test | tail` is npm. */
export function programOfCommand(command: string): CommandProgram {
  const parts = command.slice(0, COMMAND_CHARS_MAX).split(/&&|\|\||[;|\n]/)
  const programs = parts.map(programOfPart).filter(({ program }) => program !== '' && program !== 'cd')
  return programs.find(({ program }) => Object.hasOwn(NOISE, program)) ?? programs[0] ?? NONE
}

function programOfPart(part: string): CommandProgram {
  const words = part.trim().split(/\s+/)
  const at = words.findIndex((word) => word !== '' && !/^\w+=/.test(word) && !PASSED_OVER.has(word))
  const name = (words[at] ?? '').split('/').at(-1) ?? ''
  const program = Object.hasOwn(SAME, name) ? (SAME[name] ?? name) : name
  const verb = words.slice(at + 1).find((word) => !word.startsWith('-')) ?? ''
  return at < 0 ? NONE : { program, verb }
}

const NOISE: Readonly<Record<string, readonly RegExp[]>> = {
  git: [
    /^(?:remote: )?(?:Counting|Compressing|Enumerating|Receiving|Writing|Unpacking|Total|Resolving) ?(?:objects|deltas)?\b/,
    /^(?:remote: ?$|hint: |Updating files: |Delta compression )/,
    /^\s*\(use "git /,
  ],
  npm: [
    /^npm (?:http|timing|sill|silly|verb|verbose|info|notice)\b/i,
    /^npm warn deprecated /i,
    /^\s{0,8}(?:✓|✔|√|✅|PASS\b|ok \d)/,
    /^\s{0,4}(?:\d{1,6} packages are looking for funding|run `npm fund`)/,
    /^(?:➤ YN0000|Progress: resolved|Packages: \+|\++$)/,
  ],
  cargo: [
    /^\s{0,12}(?:Compiling|Downloading|Downloaded|Checking|Fresh|Updating|Locking|Adding|Blocking|Installing|Documenting) /,
    /^test .{1,250} \.\.\. (?:ok|ignored)$/,
  ],
  pytest: [
    /^(?:platform |rootdir: |configfile: |plugins: |cachedir: |asyncio: )/,
    /^\S{1,250}::\S{1,250} PASSED\b/,
    /^\S{1,250} [.sx]{1,250}\s{0,120}\[\s{0,2}\d{1,3}%\]$/,
    /^[.sx]{1,250}\s{0,120}\[\s{0,2}\d{1,3}%\]$/,
  ],
  tsc: [/^\s{0,8}\d{1,7}\s/, /^\s{0,200}~+\s*$/, /^\s*$/],
  kubectl: [/^\S{1,250}\s+(?:\S{1,250}\s+)?(\d{1,5})\/\1\s+(?:Running|Completed)\s+0\s/, /\s(?:Active|Bound|Normal)\s/],
}

/** A test for lines of this program that mean nothing when all is well. Null if there are no rules for the program. */
export function noiseFilter(command: string | undefined): ((line: string) => boolean) | null {
  if (command === undefined) return null
  const { program } = programOfCommand(command)
  const rules = Object.hasOwn(NOISE, program) ? NOISE[program] : undefined
  return rules === undefined ? null : (line) => rules.some((rule) => rule.test(line))
}
